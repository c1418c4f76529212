"""Questions with names and regressions, through the command."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from scenarios.commands.app import app
from scenarios.profiling.ask import listing
from scenarios.profiling.files import import_files
from tests.helpers.foreign_profiles import profile_of

STACKS = [((Frame("f", "a"),), (3, 10**17 + 1)), ((Frame("g", "a"),), (2, 7))]


def run(*arguments):
    return CliRunner().invoke(app, ["profile", *map(str, arguments)])


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    (folder / "cycles.pb.gz").write_bytes(
        write_pprof(profile_of([Measure("samples"), Measure("cycles", "events")], STACKS))
    )
    import_files([folder / "cycles.pb.gz"], folder / "made")
    return folder / "made"


def test_an_imported_profile_counts_the_samples_of_its_file(imported):
    query = json.loads(run("query", imported, "--event", "cycles", "--json").stdout)
    assert query["total"] == {"samples": 5, "value": 10**17 + 8}
    assert run("query", imported.parent / "cycles.pb.gz").stdout.startswith("5 samples of cycles on 1 visit")
    assert json.loads(run("stability", imported, "--json").stdout)["whole"]["samples"] == 5


def test_every_question_of_the_list_says_that_it_is_one():
    answer = listing()
    assert {entry["kind"] for entry in answer.payload()} == {"question"}
    assert list(answer.frame()) == ["name", "title", "why", "parameters"]


def test_what_is_not_known_of_savings_is_empty_and_not_0(imported):
    (row,) = json.loads(run("ask", imported, "savings", "--set", "function=f", "--json").stdout)["rows"]
    assert row["share"] == pytest.approx(1.0)
    names = ("core_hours_saved", "core_hours_per_year", "money_per_year", "money_per_year_low", "low", "high")
    assert [row[name] for name in names] == [None] * len(names)


@pytest.mark.parametrize("question", ["versions", "compilers"])
def test_an_imported_profile_has_no_intervals_in_any_answer(imported, question):
    rows = json.loads(run("ask", imported, question, "--json").stdout)["rows"]
    assert [(row["share"], row["low"], row["high"]) for row in rows] == [(1.0, None, None)]


@pytest.fixture(scope="module")
def folded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folded")
    for name, count in (("a", 11), ("b", 12), ("c", 13)):
        (folder / f"{name}.folded").write_text(f"main;read {count}\nmain;hash 4\n")
    assert run("import", folder / "*.folded", "--out", folder / "made").exit_code == 0
    return folder / "made"


def test_without_cycles_every_command_takes_the_event_that_query_takes(folded):
    """Patterns of names are taken; these failed: there are no cycles."""
    stable = json.loads(run("stability", folded, "--json").stdout)
    assert (stable["event"], stable["whole"]["samples"]) == ("samples", 48)
    assert run("export", folded, "--format", "folded", "--out", folded / "out").exit_code == 0
    saved = json.loads(run("ask", folded, "savings", "--set", "function=hash", "--json").stdout)
    assert saved["parameters"]["event"] == "samples"
    (row,) = saved["rows"]
    assert (row["samples_saved"], row["core_hours_saved"]) == (pytest.approx(0.12), None)
    callers = json.loads(run("ask", folded, "deprecated", "--set", "function=hash", "--json").stdout)["rows"]
    assert {row["caller"] for row in callers} == {"main"}


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (("stability", "{}", "--event", "x"), '--event: unknown event "x"; there are samples'),
        (("export", "{}", "--format", "folded", "--out", "{}.f", "--event", "x"), "--event: unknown event"),
        (("ask", "{}", "shared", "--set", "event=x"), '--set event=…: unknown event "x"; there are samples'),
        (("ask", "{}", "locks"), '--set event=…: unknown event "lock_wait"; there are samples'),
    ],
)
def test_an_event_that_is_not_there_names_the_option(folded, arguments, refused):
    ended = run(*(argument.format(folded) for argument in arguments))
    assert (ended.exit_code, ended.stderr.startswith(refused)) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "{}"),
        ("query", "{}", "--event", "samples"),
        ("stability", "{}"),
        ("diff", "{}", "{}"),
        ("regress", "{}", "--at", "1s"),
        ("watch", "{}"),
        ("export", "{}", "--format", "folded", "--out", "{}.f"),
        ("ask", "{}", "shared"),
    ],
)
def test_a_file_whose_counts_are_all_zero_is_named_so(tmp_path, arguments):
    """All said: unknown event "cycles"; there are none."""
    (tmp_path / "zero.folded").write_text("main;f 0\nmain;g 0\n")
    assert run("import", tmp_path / "zero.folded", "--out", tmp_path / "made").exit_code == 0
    ended = run(*(argument.format(tmp_path / "made") for argument in arguments))
    assert (ended.exit_code, "all counts are zero" in ended.stderr) == (2, True), ended.stderr


def test_where_no_code_is_shared_that_is_said(imported):
    assert "nothing found: nothing is run by two applications or more" in run("ask", imported, "shared").stdout
    told = "function: name one; no function is shared between applications"
    assert run("ask", imported, "savings").stderr.strip() == told


def test_core_hours_follow_from_processor_time(tmp_path):
    file = tmp_path / "cpu.pb.gz"
    hours = profile_of([Measure("samples"), Measure("cpu", "nanoseconds")], [((Frame("f", "a"),), (5, 72 * 10**14))])
    file.write_bytes(write_pprof(hours))
    import_files([file], tmp_path / "made")
    (row,) = json.loads(run("ask", tmp_path / "made", "savings", "--set", "function=f", "--json").stdout)["rows"]
    assert (row["cpu_saved_s"], row["core_hours_saved"]) == (pytest.approx(72_000.0), pytest.approx(20.0))


def test_many_files_are_not_listed_and_the_option_that_helps_is_named(folded):
    told = json.loads(run("query", *[folded.parent / f"{name}.folded" for name in "abc"], "--json").stdout)["notes"]
    assert "do not add up to one; wsc profile import --drawn-from says of how many machines they are" in told[-1]
    from analysis.profiling import fleet_samples

    assert fleet_samples.listed(["a", "b"], 1) == "a and 1 more"


def test_a_question_that_is_not_there_names_the_command_that_lists_them(imported):
    ended = run("ask", imported, "nosuch")
    assert ended.exit_code == 2
    assert "wsc profile ask --list lists them" in ended.output


@pytest.mark.filterwarnings("error")
def test_one_machine_on_a_side_is_too_few_to_compare(imported):
    later = imported.parent / "later.pb.gz"
    later.write_bytes(write_pprof(profile_of([Measure("samples"), Measure("cycles", "events")], STACKS[:1])))
    import_files([later], imported.parent / "later")
    ended = run("regress", imported, imported.parent / "later")
    assert ended.exit_code == 2
    assert "2 machines with samples before are needed, 1 given; import the profiles of several" in ended.output


def drawn(folder, name, machines, seed=1):
    """An import of machines by number: 12 functions each, counts that depend on the number and the seed alone."""
    for machine in machines:
        counts = np.random.default_rng([seed, machine]).integers(20, 90, 12)
        lines = [f"main;f{at} {count}\n" for at, count in enumerate(counts)]
        (folder / f"{name}-{machine}.folded").write_text("".join(lines))
    import_files(sorted(folder.glob(f"{name}-*")), folder / name, machines=100)
    return folder / name


def test_a_profile_is_not_compared_with_itself_or_a_copy(tmp_path):
    one = drawn(tmp_path, "one", range(6))
    shutil.copytree(one, tmp_path / "copy")
    for other in (one, tmp_path / "copy"):
        ended = run("regress", one, other)
        assert (ended.exit_code, ended.stdout) == (2, "")
        said = "LATER: holds the very samples of RUN: visits on both sides say nothing of a change; give a profile of"
        assert ended.stderr == f"{said} another time, or RUN alone and --at\n"


def test_a_profile_is_refused_beside_itself_before_its_samples_are_counted(tmp_path, monkeypatch):
    one = drawn(tmp_path, "one", range(6))
    monkeypatch.delattr("analysis.profiling.database.Database.counted")
    assert "LATER: holds the very samples of RUN" in run("regress", one, one / ".." / "one").stderr


def test_sides_that_share_visits_are_not_compared(tmp_path):
    ended = run("regress", drawn(tmp_path, "one", range(6)), drawn(tmp_path, "other", range(4, 12)))
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.startswith("LATER: holds the very samples of 2 of RUN's 6 machines: visits on both sides")


def test_machines_that_are_only_visited_again_are_compared(tmp_path):
    ended = run("regress", drawn(tmp_path, "one", range(6)), drawn(tmp_path, "other", range(6), seed=2))
    assert ended.exit_code == 0
    assert "no function is shown to be more expensive" in ended.stdout


def test_one_profile_alone_needs_a_time(imported):
    ended = run("regress", imported)
    assert ended.exit_code == 2
    assert "--at: one run needs a time" in ended.output


def test_criteria_of_alarms_are_options_and_all_faults_come_at_once(imported):
    given = {"--min-factor": "0.5", "--min-cost": "2", "--false-alarms": "0%", "--adjustment": "none", "--at": "soon"}
    ended = run("regress", imported, *(word for pair in given.items() for word in pair))
    assert ended.exit_code == 2
    for option, text in given.items():
        assert any(line.startswith(f"{option}: ") and text in line for line in ended.output.splitlines())


def test_no_alarm_says_what_could_have_been_found(small_profile):
    """In words and as JSON: a function of that size must grow by that much, at the criteria that are named."""
    asked = ("regress", small_profile, "--at", "2d", "--min-factor", "1.1", "--false-alarms", "5%")
    payload = json.loads(run(*asked, "--json").stdout)
    expected = {"min_factor": 1.1, "min_cost": 0.0001, "false_alarms": 0.05, "adjustment": "holm"}
    assert payload["criteria"] == expected
    assert payload["alarms"] == []
    (size,) = payload["detectable"]
    assert size["functions"] > 0
    told = run(*asked).stdout
    assert "no function is shown to be more expensive by over 10% (chance of any false alarm: 5%)" in told
    assert f"on these machines a function of {100 * size['share']:.2g}% of cycles" in told
    assert "80% probability" in told
