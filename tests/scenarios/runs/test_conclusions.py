"""What was concluded of a run is told again, the same, until something that decides it is another."""

import json
import shutil
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from analysis.figures import style
from scenarios.files.loader import load, settings
from scenarios.kinds import KINDS
from scenarios.runs import conclusions
from scenarios.runs.conclusions import conclusion_digest, kept_conclusion
from scenarios.runs.execution import measure, reopen, run
from scenarios.views.terminal import dumps, show

TINY = {
    "small": (
        "fleet.machines=60 horizon_s=7200 population.jobs=60 population.common_jobs=40 analyses.wsmeter.machines=[5,10]"
    ),
    "queue_small": "horizon_s=200",
    "cross_rubis": (
        "horizon_s=3600 application.types=4 platforms=[piii,pres,pd4] "
        "analyses.crossplatform.methods=[cycle_mix,published] analyses.crossplatform.choices=2"
    ),
    "profiled_small": (
        "fleet.machines=20 fleet.machines_per_rack=2 population.jobs=20 population.common_jobs=12 "
        "population.heavyweights=4 profiling.collector.round_s=7200"
    ),
}


def quiet(_what, _share):
    pass


def tiny(name, *more):
    return load(name, settings([*TINY[name].split(), *more]))


def text(conclusion):
    console = Console(width=100, file=StringIO())
    show(conclusion.section(), console)
    return console.file.getvalue()


@pytest.fixture(scope="module", autouse=True)
def _blank_pictures():
    """Let the files of pictures be there and hold nothing: what is drawn is looked at in reports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "write", lambda _figure, file, _kind: file.write_bytes(b""))
        yield


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def measured_again(monkeypatch):
    """Conclusions that were measured, not told again."""
    kept = []
    keep = conclusions.keep_record
    monkeypatch.setattr(
        conclusions, "keep_record", lambda conclusion, file: (kept.append(conclusion), keep(conclusion, file))
    )
    return kept


@pytest.fixture(scope="module")
def measured_queue(out, tmp_path_factory):
    """A queue's run that was measured once, and a copy of it with all that was concluded."""
    place = tmp_path_factory.mktemp("measured") / "queue"
    shutil.copytree(run(tiny("queue_small"), out, False, quiet).run, place)
    measure(*reopen(place), place.parent, quiet)
    return place, shutil.copytree(place, tmp_path_factory.mktemp("copy") / "queue")


@pytest.fixture
def queue(measured_queue):
    """Return a queue's run, in its place and with its pictures as they were drawn when it was measured once."""
    place, copy = measured_queue
    yield reopen(place)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(copy, place)


def again(scenario, there):
    return measure(scenario, there, there.path.parent, quiet)


@pytest.mark.parametrize("name", TINY)
def test_every_kind_tells_again_what_it_concluded_to_the_byte(out, measured_again, name):
    scenario = tiny(name)
    first = run(scenario, out, False, quiet)
    pictures = {Path(file): Path(file).stat().st_mtime_ns for file in first.figures}
    assert pictures
    measured_again.clear()
    second = run(scenario, out, False, quiet)
    assert measured_again == []
    assert dumps(second) == dumps(first)
    assert text(second) == text(first)
    pd.testing.assert_frame_equal(second.frame(), first.frame())
    assert dict(KINDS[scenario.kind].lens.numbers(second)) == pytest.approx(
        dict(KINDS[scenario.kind].lens.numbers(first)), nan_ok=True, rel=0, abs=0
    )
    assert {file: file.stat().st_mtime_ns for file in pictures} == pictures


def test_other_code_measures_again(queue, measured_again, monkeypatch):
    monkeypatch.setattr(conclusions, "conclusion_digest", lambda: "other code")
    again(*queue)
    assert len(measured_again) == 1


def test_other_analyses_measure_again(queue, measured_again):
    scenario, there = queue
    laws = replace(scenario.analyses.occupancy, interval_s=7.0)
    answer = again(replace(scenario, analyses=replace(scenario.analyses, occupancy=laws)), there)
    assert len(measured_again) == 1
    assert answer.occupancy.interval_s == 7.0
    again(scenario, there)
    assert len(measured_again) == 2, "pictures were of other analyses"


def test_a_picture_that_is_gone_is_drawn_again(queue, measured_again):
    first = again(*queue)
    Path(first.figures[0]).unlink()
    assert dumps(again(*queue)) == dumps(first)
    assert len(measured_again) == 1
    assert Path(first.figures[0]).is_file()


@pytest.mark.parametrize("table", ["cpu", "replays"])
def test_a_table_that_is_another_or_gone_is_measured_again(queue, measured_again, table):
    _, there = queue
    if table == "replays":
        there.file(table).unlink()
    else:
        there.table(table).iloc[:-1].to_parquet(there.file(table))
    again(*queue)
    assert len(measured_again) == 1


def test_a_run_that_was_moved_is_measured_where_it_is(queue, measured_again):
    scenario, there = queue
    moved = there.path.rename(there.path.with_name("moved"))
    answer = again(scenario, replace(there, path=moved))
    assert len(measured_again) == 1
    assert str(moved) in text(answer)


def test_force_measures_again(out, measured_again):
    scenario = tiny("queue_small")
    run(scenario, out, False, quiet)
    measured_again.clear()
    run(scenario, out, True, quiet)
    assert len(measured_again) == 1


@pytest.mark.parametrize(
    "damage", ["", "[]", "{}", "null", '{"record": ["os:system", []]}', '{"record": ["sim:no", []]}']
)
def test_a_damaged_conclusion_is_measured_again(queue, measured_again, damage):
    _, there = queue
    (file,) = (there.path / "concluded").glob("conclusion-*.json")
    before = file.read_text()
    file.write_text(damage)
    again(*queue)
    assert len(measured_again) == 1
    assert file.read_text() == before


@pytest.mark.parametrize(
    "value",
    [
        float("inf"),
        np.float32(0.1),
        np.array([[1, 2]], dtype=np.int16),
        (1, [2.5, None], {3: "c"}),
        pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None], "c": [True, False]}, index=[4, 7]),
        pd.DataFrame(columns=["a", "b"]),
        pd.DataFrame(),
        Path("a/b"),
    ],
)
def test_values_are_read_as_they_were_written(value):
    known = conclusions._value(json.loads(json.dumps(conclusions._json(value))))
    if isinstance(value, pd.DataFrame):
        pd.testing.assert_frame_equal(known, value)
        return
    np.testing.assert_equal(known, value)
    assert isinstance(known, type(value)) or isinstance(value, np.generic)


@dataclass(frozen=True)
class Odd:
    """A conclusion with something that is not kept."""

    thing: object
    figures: tuple[str, ...] = ()


@pytest.mark.parametrize("thing", [object(), pd.DataFrame({"a": pd.to_datetime(["2026-01-01"])}), {1, 2}])
def test_what_cannot_be_kept_is_measured_every_time(queue, thing):
    calls = []
    lens = kept_conclusion(lambda *_asked: (calls.append(1), Odd(thing))[1])
    scenario, there = queue
    assert lens(scenario, there, there.path, quiet).thing is lens(scenario, there, there.path, quiet).thing
    assert len(calls) == 2


def test_a_conclusion_is_of_all_code_and_of_the_libraries_that_it_computes_with(monkeypatch):
    before = conclusion_digest()
    assert before == conclusion_digest()
    known = conclusions.version_of
    monkeypatch.setattr(conclusions, "version_of", lambda name: "0" if name == "ortools" else known(name))
    assert conclusion_digest() != before
