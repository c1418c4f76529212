"""Every column is said once, with a unit in its name and a meaning."""

import re

import pyarrow as pa
import pytest

from models.tables import ARMS, COUNTERS, SCHEMAS, TABLES

each = pytest.mark.parametrize("table", TABLES)
NUMBERS_WITHOUT_UNIT = {
    *("memory_accesses_per_instruction", "core_cpi", "overlap", "stall_share", "capped_share", "input_log_sd"),
    *("speed", "slowdown", "machine_utilisation", "factor"),
    *("cycles", "instructions", "llc_misses", "requests", "residual_max", "utilisation", "bandwidth_utilisation"),
    *("l1_misses", "l2_misses", "misses_per_instruction", "score_per_s", "throughput_per_s"),
    *("mispredictions", "overhead_cycles", "floating_point", "max_samples_per_s"),
    *("target_margin", "planned_margin", "margin", "change", "quota_coverage"),
}


@each
def test_columns_have_different_names_and_a_meaning(table):
    names = [column.name for column in TABLES[table]]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z_0-9]*", name) for name in names)
    assert all(len(column.meaning.strip()) >= 3 for column in TABLES[table])


@each
def test_measured_numbers_have_a_unit_in_their_name(table):
    numbers = [column.name for column in TABLES[table] if column.type == pa.float64()]
    with_unit = re.compile(r"_(s|hz|w|j|bytes|vcpu)$")
    assert all(with_unit.search(name) or name in NUMBERS_WITHOUT_UNIT for name in numbers)


@each
def test_the_schema_says_meanings_and_allows_no_nulls(table):
    fields = SCHEMAS[table]
    assert fields.names == [column.name for column in TABLES[table]]
    assert not any(field.nullable for field in fields)
    assert [field.metadata[b"meaning"].decode() for field in fields] == [column.meaning for column in TABLES[table]]


def test_the_counterfactual_tables_look_like_the_recorded_ones():
    for arm in ARMS:
        assert TABLES[f"truth_{arm}_counters"] == COUNTERS


def test_an_unknown_table_is_refused():
    with pytest.raises(KeyError, match="nonsense"):
        SCHEMAS["nonsense"]
