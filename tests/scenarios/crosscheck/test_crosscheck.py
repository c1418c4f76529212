"""`wsc crosscheck`: agreement on one day, and planted disagreement in copies of it."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.crosscheck import profile as visits
from analysis.crosscheck.check import Check
from models.tables import SCHEMAS, TABLES
from scenarios.commands.app import app
from scenarios.crosscheck import crosscheck
from scenarios.crosscheck.crosscheck import PARTS
from scenarios.runs.rundir import open_run
from scenarios.views.terminal import show
from tests.helpers.one_day_small import small_day

runner = CliRunner()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return small_day(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def found(run):
    """What is said of the day as it is; moving jobs simulates the fleet again and has tests of its own."""
    parts = [part for name, part in PARTS.items() if name != "moves"]
    return [check for part in parts for check in part(run)]


@pytest.fixture
def copied(run, tmp_path):
    """Change one table of a copy, and return the checks of one part that fail there."""
    folder = tmp_path / "copy"
    shutil.copytree(run.path, folder)

    def change(part, table, how):
        file = folder / f"{table}.parquet"
        how(pd.read_parquet(file)).to_parquet(file)
        return {check.check for check in PARTS[part](open_run(folder)) if not check.holds}

    change.folder = folder
    return change


def scaled(**factors):
    return lambda table: table.assign(**{name: table[name] * factor for name, factor in factors.items()})


def shifted(by_s):
    return lambda table: table.assign(**{name: table[name] + by_s for name in ("arrival_s", "departure_s")})


def test_every_lens_agrees_on_one_day(found):
    assert [check for check in found if not check.holds] == []
    assert {check.check.partition(":")[0] for check in found} == {
        *("counters_epochs", "counters_machines", "counters_presence", "counters_frequency", "counters_traces"),
        *(
            "energy_machines",
            "feature_stays",
            "wsmeter_counters",
            "profile_counters",
            "profile_wsmeter",
            "profile_misses",
            "profile_core_seconds",
            "profile_rounds",
            "profile_residents",
            "profile_visits",
        ),
        *("profile_symbols", "occupancy_stays", "occupancy_epochs", "requests_counted", "service_times"),
        *("upgrade_wsmeter", "upgrade_predicted", "upgrade_tried"),
    }


def test_what_is_written_is_what_the_tables_say(run):
    assert "stay_requests" in run.tables
    for name in run.tables:
        assert pd.read_parquet(run.file(name)).columns.tolist() == SCHEMAS[name].names
    assert set(run.tables) <= set(TABLES)


def test_utilisation_by_stamps_is_the_counters_to_the_ninth_digit(run):
    """The stamps are added up here without any curve: each moment's requests in service, at most as many as servers."""
    requests, counters = run.table("stay_requests"), run.table("counters").set_index("residence")
    ends_s = run.table("instances").set_index("residence")["end_s"]
    for residence, rows in list(requests.groupby("residence"))[:12]:
        left = rows["departure_s"].dropna()
        time_s = np.concatenate([rows["arrival_s"], left, [ends_s[residence]]])
        step = np.concatenate([np.ones(len(rows)), -np.ones(len(left)), [0.0]])
        order = np.argsort(time_s, kind="stable")
        present = np.cumsum(step[order])[:-1]
        busy_s = (np.minimum(present, 2) * np.diff(time_s[order])).sum()
        wall_s = counters.loc[residence, "wall_s"]
        assert busy_s / (2 * wall_s) == pytest.approx(counters.loc[residence, "cpu_s"] / (2 * wall_s), abs=1e-9)


@pytest.mark.parametrize(
    ("part", "table", "how", "fail"),
    [
        (
            *("counters", "counters", scaled(cycles=1.15)),
            {"counters_epochs", "counters_machines", "counters_frequency", "counters_traces"},
        ),
        ("requests", "counters", scaled(cpu_s=1.0001), {"occupancy_stays"}),
        ("requests", "stay_requests", shifted(60.0), {"occupancy_epochs", "occupancy_stays"}),
        ("requests", "instance_epochs", scaled(cpu_s=1.0001), {"occupancy_epochs"}),
        ("profile", "counters", scaled(cycles=1.15), {"profile_counters"}),
        ("profile", "samples", lambda table: table[table["process"] % 4 > 0], {"profile_core_seconds"}),
        ("profile", "samples", lambda table: table[table["process"] > 400], {"profile_visits"}),
        ("profile", "visits", scaled(start_s=1000.0, length_s=1000.0), {"profile_rounds", "profile_residents"}),
        ("profile", "counters", scaled(llc_misses=2.0), {"profile_misses"}),
        ("counters", "machines", lambda table: table.assign(feature=~table["feature"]), {"feature_stays"}),
        ("counters", "machine_windows", lambda table: table[table["machine"] > 0], {"counters_machines"}),
        ("upgrade", "truth_trial_everywhere_counters", scaled(instructions=1.2), {"upgrade_wsmeter"}),
    ],
    ids=[
        *("cycles", "cpu", "clock", "epochs", "cpi", "samples", "visits", "milliseconds", "misses", "feature"),
        *("machine", "truth"),
    ],
)
def test_what_is_planted_in_a_copy_is_found(copied, part, table, how, fail):
    assert copied(part, table, how) >= fail


def test_visits_of_one_machine_that_are_an_hour_late_are_found_whichever_it_is(run):
    """A round then has a visit too few or too many, or a machine twice; and stays had come or gone on most machines."""
    table, instances = run.table("visits"), run.table("instances")
    processes = run.table("processes", ["visit", "residence"])
    machines, elsewhere = table["machine"].unique(), 0
    for machine in machines[::3]:
        late = table.assign(start_s=table["start_s"] + 3600.0 * (table["machine"] == machine))
        assert not visits.rounds(late, 3600.0, 86400.0, 16.0).holds
        made = visits.residents(late, processes, instances)
        elsewhere += made.left < made.right
    assert elsewhere > len(machines[::3]) / 2


@pytest.mark.parametrize("factor", [1.001, 0.999])
@pytest.mark.parametrize(
    ("part", "column", "check"),
    [
        ("requests", "requests", "requests_counted"),
        ("counters", "wall_s", "counters_presence"),
        ("counters", "mean_frequency_hz", "counters_frequency"),
    ],
)
def test_a_counter_that_is_scaled_is_found_by_the_check_of_it_alone(copied, factor, part, column, check):
    assert copied(part, "counters", scaled(**{column: factor})) == {check}


@pytest.mark.parametrize("column", ["cycles", "instructions", "llc_misses", "cpu_s"])
def test_a_trace_that_is_scaled_is_found(copied, column):
    assert copied("counters", "instance_epochs", scaled(**{column: 1.001})) == {"counters_traces"}


@pytest.mark.parametrize("table", ["machine_windows", "epochs"])
def test_energy_that_is_scaled_is_found(copied, table):
    assert copied("counters", table, scaled(energy_j=1.001)) == {"energy_machines"}


@pytest.mark.parametrize(
    "how",
    [
        lambda raw: raw[::2],
        lambda raw: raw[1:],
        lambda raw: raw.assign(count=raw["count"] * (1 + (raw["count"] > 9))),
        lambda raw: raw.assign(process=raw["process"].to_numpy()[::-1]),
    ],
    ids=["half", "row", "scaled", "processes"],
)
def test_raw_samples_that_are_not_those_with_symbols_are_found(copied, how):
    assert copied("profile", "raw_samples", how) == {"profile_symbols"}


def test_what_compares_equal_numbers_is_decisive(found):
    exact = {"counters_presence", "counters_frequency", "counters_traces", "energy_machines"}
    exact |= {"requests_counted", "profile_symbols", "profile_rounds", "profile_residents", "feature_stays"}
    assert {check.check for check in found if check.decisive} >= exact


def test_one_visit_whose_profile_is_lost_is_missed(copied):
    processes = pd.read_parquet(copied.folder / "processes.parquet")
    lost = processes.loc[processes["visit"] == processes["visit"].iloc[0], "process"]
    assert copied("profile", "samples", lambda table: table[~table["process"].isin(lost)]) == {
        *("profile_visits", "profile_symbols")
    }


def test_a_service_without_a_stay_on_the_platforms_of_the_trial_has_no_check_and_others_have(copied):
    jobs = pd.read_parquet(copied.folder / "jobs.parquet").set_index("name")["job"]

    def elsewhere(stays):
        return stays.assign(platform=stays["platform"].astype(str).mask(stays["job"] == jobs["report"], "elsewhere"))

    copied("upgrade", "instances", elsewhere)
    names = {check.check for check in PARTS["upgrade"](open_run(copied.folder))}
    assert names == {"upgrade_wsmeter", "upgrade_predicted:search", "upgrade_tried:search"}


def test_a_copy_without_truth_compares_prediction_and_trial_alone(copied):
    for file in copied.folder.glob("truth_*.parquet"):
        file.unlink()
    names = {check.check.partition(":")[0] for check in PARTS["upgrade"](open_run(copied.folder))}
    assert names == {"upgrade_tried"}


@pytest.fixture
def light(monkeypatch):
    """Let the command compare counters alone."""
    monkeypatch.setattr(crosscheck, "PARTS", {"counters": PARTS["counters"]})


@pytest.mark.usefixtures("light")
def test_the_command_says_it_as_json_and_ends_with_1_where_something_differs(run, copied):
    whole = runner.invoke(app, ["crosscheck", str(run.path), "--json"])
    assert whole.exit_code == 0
    said = json.loads(whole.stdout)
    assert [one["check"] for one in said] == [
        *("counters_presence", "counters_frequency", "counters_epochs", "energy_machines", "counters_traces"),
        *("counters_machines", "feature_stays", "wsmeter_counters"),
    ]
    assert all(
        list(one) == ["kind", "check", "left", "right", "tolerance", "tolerance_share", "holds", "decisive"]
        for one in said
    )
    assert "not decisive" not in runner.invoke(app, ["crosscheck", str(run.path)]).stdout
    copied("counters", "counters", scaled(cycles=1.5))
    failed = runner.invoke(app, ["crosscheck", str(copied.folder)])
    assert failed.exit_code == 1
    assert "counters_epochs" in failed.stdout
    assert "8 checks, 4 failed" in failed.stdout


@pytest.mark.usefixtures("light")
def test_what_is_no_run_or_cannot_be_compared_ends_with_2_and_a_line(copied, tmp_path):
    nothing = runner.invoke(app, ["crosscheck", str(tmp_path / "nowhere")])
    assert nothing.exit_code == 2
    assert "not a finished run" in nothing.output
    (copied.folder / "counters.parquet").write_bytes(b"PAR1")
    broken = runner.invoke(app, ["crosscheck", str(copied.folder)])
    assert broken.exit_code == 2
    assert "counters.parquet: cannot be read" in broken.output
    (copied.folder / "counters.parquet").unlink()
    lost = runner.invoke(app, ["crosscheck", str(copied.folder)])
    assert (lost.exit_code, "is not there, though the run lists it" in lost.output) == (2, True)
    manifest = copied.folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"tables": {}}))
    for file in copied.folder.glob("*.parquet"):
        file.unlink()
    empty = runner.invoke(app, ["crosscheck", str(copied.folder)])
    assert empty.exit_code == 2
    assert "has no tables that could be compared" in empty.output
    assert len(empty.output.strip().splitlines()) == 1


def texts(column):
    return lambda table: table.assign(**{column: table[column].astype(str)})


def none(table):
    return table[:0]


def doubled(rows):
    return lambda table: pd.concat([table, table[:rows]])


def lost(column):
    return lambda table: table.assign(**{column: table[column].where(table.index > 2)})


@pytest.mark.parametrize(
    ("table", "how", "said"),
    [
        *((name, doubled(5), "should be there once, got") for name in ("instances", "jobs", "machines", "monitor")),
        ("instances", doubled(50), "residence: should be there once, got 0 again and 49 more"),
        ("counters", doubled(1), "residence, window: should be there once, got"),
        *(
            (name, none, "should hold rows, got none")
            for name in ("machines", "epochs", "instances", "stay_requests", "samples", "counters")
        ),
        ("instance_epochs", texts("residence"), "residence: should hold whole numbers, got type large_string"),
        ("counters", texts("cycles"), "cycles: should hold numbers, got type large_string"),
        ("jobs", lambda table: table.assign(name=3), "name: should hold text, got type int64"),
        ("machines", lambda table: table.drop(columns="feature"), "feature: column is missing"),
        ("monitor", lost("busy_s"), "busy_s: should be a number, got NaN or infinite in 3 of 64 rows"),
        ("counters", scaled(cpu_s=np.inf), "cpu_s: should be a number, got NaN or infinite in"),
        ("stay_requests", scaled(departure_s=np.inf), "departure_s: should be finite, got"),
        ("instances", lost("job"), "job: should hold whole numbers, got type double"),
    ],
)
def test_a_table_that_is_damaged_is_named_with_its_field_and_ends_with_2(copied, table, how, said):
    file = copied.folder / f"{table}.parquet"
    how(pd.read_parquet(file)).to_parquet(file, index=False)
    done = runner.invoke(app, ["crosscheck", str(copied.folder)])
    assert done.exit_code == 2
    assert done.output.startswith(f"{file}:")
    assert said in done.output
    assert len(done.output.strip().splitlines()) == 1


@pytest.mark.parametrize(("table", "how"), [("instances", doubled(50)), ("epochs", none), ("samples", none)])
def test_a_report_names_what_is_damaged_in_the_same_words(copied, table, how):
    file = copied.folder / f"{table}.parquet"
    how(pd.read_parquet(file)).to_parquet(file, index=False)
    said = [runner.invoke(app, [command, str(copied.folder)]) for command in ("crosscheck", "report")]
    assert [done.exit_code for done in said] == [2, 2]
    assert said[0].output == said[1].output
    assert not (copied.folder / "report.html").exists()


def test_visits_in_milliseconds_end_the_command_with_1_and_the_file_is_named(copied, monkeypatch):
    monkeypatch.setattr(crosscheck, "PARTS", {"profile": PARTS["profile"]})
    failed = copied("profile", "visits", scaled(start_s=1000.0, length_s=1000.0))
    done = runner.invoke(app, ["crosscheck", str(copied.folder), "--json"])
    assert done.exit_code == 1
    assert {one["check"] for one in json.loads(done.stdout) if not one["holds"]} == failed
    assert failed >= {"profile_rounds", "profile_residents"}
    assert done.stderr == "changed since the run was made: visits.parquet\n"


def test_every_table_that_is_damaged_is_named_at_once(copied):
    whole = (copied.folder / "counters.parquet").read_bytes()
    (copied.folder / "counters.parquet").write_bytes(whole[: len(whole) // 2])
    jobs = pd.read_parquet(copied.folder / "jobs.parquet")
    doubled(5)(lost("quota_vcpu")(jobs)).to_parquet(copied.folder / "jobs.parquet", index=False)
    done = runner.invoke(app, ["crosscheck", str(copied.folder)])
    assert done.exit_code == 2
    assert [line.removeprefix(f"{copied.folder}/").partition(",")[0] for line in done.output.strip().splitlines()] == [
        "counters.parquet: cannot be read: Parquet magic bytes not found in footer. Either the file is corrupted or "
        "this is not a parquet file.",
        "jobs.parquet: quota_vcpu: should be a number",
        f"jobs.parquet:{len(jobs) + 2}:1: job: should be there once",
    ]


def test_jobs_are_really_moved(run):
    """In so small a fleet neighbours change with every move, and little of the promise is kept."""
    (check,) = PARTS["moves"](run)
    assert check.check == "affinity_moved"
    assert -0.1 < check.left < check.right < 0.2


@pytest.mark.parametrize("words", [["effect"], ["profile", "query", "--by", "job"]], ids=["effect", "profile"])
def test_other_commands_read_the_same_folder(run, words):
    done = runner.invoke(app, [*words[:2], str(run.path), *words[2:], "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)


def test_what_could_not_have_failed_is_named_below_the_table(capsys):
    checks = Check("upgrade_tried:search", 0.3, 0.4, 0.5), Check("affinity_moved", 0.3, 0.4, 0.2)
    show(crosscheck.Agreement(checks).section(), Console(width=160))
    said = capsys.readouterr().out
    assert "2 checks, none failed" in said
    assert "would have passed: upgrade_tried:search\n" in said


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_name_and_the_numbers_of_a_check_are_whole_on_a_narrow_terminal(capsys, width):
    checks = (
        Check("upgrade_predicted:search", 0.308112, 0.412345, 0.512345),
        Check("profile_core_seconds", 5.43048e8, 5.37931e8, 1.23255e7),
    )
    show(crosscheck.Agreement(checks).section(), Console(width=width))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:4] for row in rows if row[0] in {check.check for check in checks}] == [
        ["upgrade_predicted:search", "0.308112", "0.412345", "0.512345"],
        ["profile_core_seconds", "5.43048e+08", "5.37931e+08", "1.23255e+07"],
    ]
