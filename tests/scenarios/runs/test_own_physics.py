"""Runs of fleets whose governor or interference comes from outside: their tables, digests, places of faults."""

import pytest
from typer.testing import CliRunner

from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.files.loader import digest, load
from scenarios.kinds import KINDS
from scenarios.runs.execution import measure, obtain, reopen
from tests.helpers.cell_fleets import quiet

FLEET = """
horizon_s: 1800
fleet: {machines: 20, machines_per_rack: 10}
population: {jobs: 60, common_jobs: 50, heavyweights: 5}
feature: {name: calm, governor: {policy: ondemand}}
analyses: {wsmeter: {machines: [5]}}
"""
OWN = """power: {governor: {policy: mine.py:flat_out}}
interference: {mechanism: mine.py:alone}
"""
LOOP = "recording: {loop: {rounds: 1, top_jobs: 5, min_instances: 2}}\n"
FUNCTIONS = """def flat_out(utilisation, stalled, limit_hz, min_hz, max_hz):
    return limit_hz


def alone(
    neighbour_utilisation, neighbour_bandwidth, neighbour_cache, sibling_busy, misses_per_instruction, smt_slowdown
):
    return 1.0
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    path = tmp_path / "mine.yaml"
    path.write_text(FLEET + OWN)
    return path


def named(scenario):
    return digest(scenario, KINDS[scenario.kind].outside(scenario))


def test_functions_written_like_ours_make_the_run_that_ours_make_which_opens_without_their_file(file, tmp_path):
    (tmp_path / "ours.yaml").write_text(FLEET)
    own, ours = (obtain(load(str(path)), tmp_path, False, quiet) for path in (file, tmp_path / "ours.yaml"))
    assert own.path != ours.path
    assert own.manifest["tables"] == ours.manifest["tables"]  # with their digests
    (tmp_path / "mine.py").unlink()
    assert reopen(own.path)[0].interference.mechanism == f"{tmp_path}/mine.py:alone"


def test_the_bytes_of_the_file_are_part_of_the_digest_and_its_place_is_not(file, tmp_path):
    before = named(load(str(file)))
    (tmp_path / "elsewhere").mkdir()
    for name in ("mine.yaml", "mine.py"):
        (tmp_path / "elsewhere" / name).write_text((tmp_path / name).read_text())
    assert named(load(str(tmp_path / "elsewhere" / "mine.yaml"))) == before
    file.with_name("mine.py").write_text(FUNCTIONS + "# other bytes\n")
    assert named(load(str(file))) != before


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("OTHER = 1\n", r"mine\.yaml:8:27: interference\.mechanism: .*holds no alone, but OTHER"),
        (
            FUNCTIONS.replace("return 1.0", "raise ValueError(1)"),
            r"mechanism: .*mine\.py:8: alone: should return a number",
        ),
        (FUNCTIONS.replace("limit_hz\n", "'fast'\n"), r"policy: .*mine\.py:\d: flat_out: cannot be compiled: No conv"),
        ("def flat_out(hz):\n    return hz\n", r"power\.governor\.policy: .*mine\.py:1: flat_out: .* got \(hz\)"),
    ],
)
def test_what_is_no_such_function_is_a_fault_of_the_scenario(file, text, problem):
    file.with_name("mine.py").write_text(text)
    with pytest.raises(FaultsError, match=problem):
        load(str(file))


def test_what_a_function_does_wrong_ends_the_command_with_its_line(file):
    file.with_name("mine.py").write_text(FUNCTIONS.replace("return 1.0", "return 1.0 / (sibling_busy - sibling_busy)"))
    ended = CliRunner().invoke(app, ["run", str(file), "--out", str(file.parent)])
    assert ended.exit_code == 2
    assert "mine.py:8: ZeroDivisionError" in ended.stderr.replace("\n", "")


def test_the_loop_is_not_simulated_with_other_functions_than_the_run_had(tmp_path):
    """Rounds that were simulated while the functions were there are kept, and say the same later."""
    mine, path = tmp_path / "mine.py", tmp_path / "mine.yaml"
    mine.write_text(FUNCTIONS)
    path.write_text(FLEET.replace("jobs: 60", "jobs: 30").replace("common_jobs: 50", "common_jobs: 25") + OWN + LOOP)
    scenario = load(str(path))
    run = obtain(scenario, tmp_path, False, quiet)

    def measured():
        return measure(scenario, run, tmp_path, quiet).payload()

    mine.write_text(FUNCTIONS.replace("return limit_hz", "return min_hz"))
    refused = measured()
    assert refused["rounds"] == []
    assert refused["estimates"]
    assert [note.partition(":")[0] for note in refused["notes"]] == ["the loop is not simulated"]
    mine.write_text(FUNCTIONS)
    simulated = measured()
    assert simulated["rounds"]
    assert simulated["notes"] == []
    mine.unlink()
    assert measured()["rounds"] == simulated["rounds"]
