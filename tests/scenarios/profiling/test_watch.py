"""`wsc profile watch` names the function that was planted, once, and says what it could have found."""

import io
import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.profiling.changes import parts, reading
from analysis.profiling.changes.detection import HiddenGrowth, SeriesChange, WatchCriteria
from analysis.profiling.changes.series import Clock
from analysis.profiling.changes.watching import WatchFinding
from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from models.randomness import stream
from scenarios.commands.app import app
from scenarios.profiling.files import import_files
from scenarios.profiling.watch import NamedCause, WatchedChange, WatchedTime, watch
from scenarios.views.terminal import dumps, show
from tests.helpers import small_profile
from tests.helpers.drawn_profiles import GROWN, write
from tests.helpers.foreign_profiles import profile_of


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    return write(tmp_path_factory.mktemp("grown"), stream(1, "watched profile"), 9.0)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return write(tmp_path_factory.mktemp("healthy"), stream(2, "watched profile"))


def shown(answer):
    text = io.StringIO()
    show(answer.section(), Console(file=text, width=160, highlight=False))
    return text.getvalue()


def test_a_function_that_grew_is_told_once_with_its_callers(grown):
    answer = watch([grown], "cpu")
    (change,) = answer.changes
    assert (change.function, change.with_callees, change.kind) == (f"f{GROWN}", False, "growth")
    assert change.low < 9.0 < change.high
    assert change.cost > 0.05
    assert change.callers == (f"mid{GROWN % 4}",)
    assert (change.since_s, change.reported_s) == (86400.0, 90000.0)
    assert "1 function became more expensive" in shown(answer)


def test_growth_beneath_a_caller_that_one_application_of_two_has_is_told_with_it(grown, tmp_path):
    """The watch ended with an IndexError: the caller's strata were taken for all."""
    for file in grown.parent.glob("*.pb.gz"):
        day, machine = (int(part) for part in file.name.removesuffix(".pb.gz").split("-"))
        (tmp_path / f"a-{file.name}").write_bytes(file.read_bytes())
        stacks = [((Frame("other", "b"), Frame("main", "b")), (500, 5000))]
        other = profile_of([Measure("samples"), Measure("cpu", "nanoseconds")], stacks)
        other = replace(other, start_s=(20_000 + day) * 86400.0 + 60.0 * machine)
        (tmp_path / f"b-{file.name}").write_bytes(write_pprof(other))
    import_files(
        sorted(tmp_path.glob("*.pb.gz")), tmp_path / "two", machines=400, service_from="{}-*.pb.gz", machine_from="file"
    )
    (change,) = watch([tmp_path / "two"], "cpu").alarms
    assert (change.function, change.callers) == (f"f{GROWN}", (f"mid{GROWN % 4}",))


def test_a_caller_that_got_another_name_is_a_shift_and_hides_no_growth(tmp_path):
    """It was "transient" until the end of the data, by 522,215 times, and the name that vanished was not told."""
    answer = watch([write(tmp_path, stream(1, "watched profile"), 3.0, renamed="other")], "cpu")
    assert {(change.function, change.kind, change.goes_with(), change.by()) for change in answer.changes[:2]} == {
        ("mid0", "shift", "to other", "to nothing"),
        ("other", "shift", "from mid0", "from nothing"),
    }
    assert [change.function for change in answer.alarms] == [f"f{GROWN}"]
    assert len(answer.changes) == 3
    assert "522" not in shown(answer)
    assert "2 only passed cost to each other" in shown(answer)


PLATFORMS = ("old",) * 6 + ("new",) * 6


@pytest.fixture(scope="module")
def grown_on_new(tmp_path_factory):
    """A function that costs three times as much on a third of the machines: 1.67 times as much on all of them."""
    folder = tmp_path_factory.mktemp("grown on new")
    rng = stream(1, "watched platforms")
    return write(folder, rng, 3.0, samples=5000, platforms=PLATFORMS, grown_on=("new",))


def test_growth_on_one_platform_is_told_where_it_is_and_once(grown_on_new):
    answer = watch([grown_on_new], "cpu")
    (change,) = answer.alarms
    assert (change.function, change.within, change.where()) == (f"f{GROWN}", {"platform": "new"}, "on new")
    assert change.low < 3.0 < change.high
    assert change.goes_with() == "platform new"
    share = 4.0 / 150.0 / 2.0
    assert change.cost == pytest.approx(2.0 * share, rel=0.3)
    payload = json.loads(dumps(answer.payload()))
    (row,) = (row for row in payload["changes"] if row["kind"] == "growth")
    assert row["within"] == {"platform": "new"}
    assert payload["series"]["within"] == answer.within == 80
    assert answer.frame().set_index("function")["within"][f"f{GROWN}"] == "platform new"
    text = " ".join(shown(answer).split())
    assert f"f{GROWN} growth on new" in text
    assert "also 80 pairs of a function and a platform or data centre, in" in text
    assert "growth in the whole fleet of a function of" in text


def test_platforms_and_functions_that_are_too_many_are_left_out_and_told(grown_on_new, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_PARTS", 1)
    monkeypatch.setattr(parts, "MOST_SERIES", 30)
    answer = watch([grown_on_new], "cpu")
    assert answer.within == 30
    assert "platforms and data centres that are too many to be watched by themselves: 1" in answer.notes
    fewer = "10 of the functions with fewer samples on one platform or in one data centre"
    assert f"{fewer} are not watched there by themselves" in answer.notes


def test_growth_on_all_platforms_is_growth_of_the_whole_fleet(tmp_path):
    rng = stream(2, "watched platforms")
    answer = watch([write(tmp_path, rng, 3.0, samples=5000, platforms=PLATFORMS)], "cpu")
    (change,) = answer.alarms
    assert (change.function, change.within, change.where()) == (f"f{GROWN}", {}, "")


def test_a_change_of_a_platform_that_goes_with_something_else_may_be_elsewhere_too(grown_on_new):
    (change,) = watch([grown_on_new], "cpu").alarms
    other = replace(change, causes=(NamedCause("kernel", "6.6.30", "", 90.0), *change.causes))
    assert other.where() == "clearest on new"
    assert replace(other, within={"datacentre": "west"}).where() == "clearest in west"


def test_functions_that_got_a_name_on_one_platform_did_not_grow_there(tmp_path):
    """Six machines have no symbols on the first day, all those of one platform."""
    rng = stream(3, "watched platforms")
    platforms = ("new",) * 6 + ("old",) * 6
    answer = watch([write(tmp_path, rng, samples=5000, platforms=platforms, unnamed=6)], "cpu")
    assert not answer.alarms
    within = [change for change in answer.changes if change.within and not change.with_callees]
    assert within
    assert {(change.kind, change.partners) for change in within} == {("shift", ("[unknown]",))}


def test_samples_without_symbols_are_no_function_that_grew(tmp_path):
    answer = watch([write(tmp_path, stream(1, "watched profile"), 9.0, grown="[unknown]")], "cpu")
    assert not answer.alarms
    (note,) = (note for note in answer.notes if "symbols" in note)
    assert note.startswith("samples without symbols: ")
    assert "from 2024-10-05T00:00Z on" in note


def test_functions_that_got_a_name_did_not_grow(tmp_path):
    """They seemed to, all at once: the first day's build had no symbols, so that its samples were of no function."""
    answer = watch([write(tmp_path, stream(3, "watched profile"), unnamed=12)], "cpu")
    assert not answer.alarms
    shifts = [change for change in answer.changes if change.kind == "shift"]
    assert len(shifts) > 20
    assert {change.partners for change in shifts} == {("[unknown]",)}


@pytest.mark.parametrize("unnamed", [11, 12])
def test_callers_that_got_a_name_did_not_grow(tmp_path, unnamed):
    """They seemed to, with all that they call: no sample was in them, and the library they call always had names."""
    profile = write(tmp_path, stream(3, "watched profile"), unnamed=unnamed, images="ba")
    answer = watch([profile], "cpu")
    assert not answer.alarms
    shifts = {change.function: change.partners for change in answer.changes if change.kind == "shift"}
    assert shifts == dict.fromkeys(("main", "mid0", "mid1", "mid2", "mid3"), ("[unknown]",))


@pytest.mark.parametrize("unnamed", [3, 6])
def test_growth_beneath_a_caller_is_told_though_callers_got_a_name(tmp_path, unnamed):
    """All ten functions grew fourfold that `mid0` calls; from half of the machines it seems to be by eight times."""
    profile = write(tmp_path, stream(4, "watched profile"), unnamed=unnamed, images="ba", heavier=4.0)
    alarms = watch([profile], "cpu").alarms
    assert "mid0" in {name for change in alarms for name in (change.function, *change.callers)}
    assert not {"main", "mid1", "mid2", "mid3"} & {change.function for change in alarms}


@pytest.mark.parametrize(("factor", "unnamed", "seed"), [(9.0, 3, 1), (2.5, 2, 2)])
def test_growth_beyond_what_names_explain_is_told(tmp_path, factor, unnamed, seed):
    """Some machines have no symbols on the first day, so that all functions seem to grow; one does besides."""
    answer = watch([write(tmp_path, stream(seed, "watched profile"), factor, unnamed=unnamed)], "cpu")
    assert [change.function for change in answer.alarms] == [f"f{GROWN}"]


def test_nothing_found_says_what_could_have_been(healthy):
    answer = watch([healthy], "cpu")
    assert not answer.changes
    text = shown(answer)
    assert "no function is shown to have become more expensive" in text
    assert "found within a day with 80% probability: growth of a function of 1% of cpu by" in text
    assert "a test that knew function and time would find" in text
    assert "days of the week cannot be told from changes" in text


def test_what_drift_hides_is_said_and_there_alone_that_a_known_time_may_show_more(healthy):
    answer = watch([healthy], "cpu")
    drifting = replace(answer, hidden=HiddenGrowth(0.013, 0.048, 1.087, 1.38))
    text = " ".join(shown(drifting).split())
    assert "a day differs from the days before by about 1.3% to 4.8% beyond chance (least for functions of many" in text
    assert "growth by less than 8.7% to 38% within a day cannot be told from that" in text
    alike = replace(answer, hidden=HiddenGrowth(0.048, 0.048, 1.38, 1.38))
    assert "by about 4.8% beyond chance; growth by less than 38% within" in " ".join(shown(alike).split())
    known = "if you know when to look, `wsc profile regress --at TIME` may find smaller changes"
    assert known in text
    still = " ".join(shown(replace(answer, hidden=None)).split())
    assert "drift" not in still
    assert "regress" not in still


def test_with_one_machine_or_two_nothing_is_judged_and_what_it_takes_is_said(grown, tmp_path):
    """How much machines differ was guessed: of 20 healthy profiles of one machine 8 had alarms, of two machines 2."""
    files = {few: [grown.parent / f"{day}-{at:02}.pb.gz" for day in (0, 1) for at in range(few)] for few in (2, 3)}
    for few, paths in files.items():
        import_files(paths, tmp_path / str(few), machines=400)
    answer = watch([tmp_path / "2"], "cpu")
    assert answer.lacking == (
        "no application was sampled on more than 2 machines on one day, so nobody can tell how much machines differ by"
        " chance; at least 3 are needed"
    )
    assert not answer.changes
    assert not watch([tmp_path / "3"], "cpu").lacking


def test_factors_that_no_number_holds_are_told_as_large_ones():
    """Very uneven counts have such ends of an interval; it was an error of the command."""
    change = SeriesChange(0, "growth", 0, None, 1, log_factor=5.0, error=500.0, cost=0.1, cost_error=0.1, root=9.0)
    told = WatchedChange.of(WatchFinding("f", False, change, pd.DataFrame()), Clock(0.0, 3600.0, 2))
    assert (told.by(), told.between()) == ("from nothing", "")


def test_payload_and_frame_say_the_same(grown):
    answer = watch([grown], "cpu")
    payload = json.loads(dumps(answer.payload()))
    assert payload["kind"] == "profile watch"
    assert [change["function"] for change in payload["changes"]] == answer.frame()["function"].tolist()
    assert payload["bins"]["width_s"] == 3600.0
    assert payload["series"] == {"functions": 40, "subtrees": 45, "within": 0}


def test_the_criteria_decide(grown):
    assert not watch([grown], "cpu", WatchCriteria(min_factor=15.0)).changes
    assert not watch([grown], "cpu", WatchCriteria(min_cost=0.5)).changes
    first = watch([grown], "cpu", span=WatchedTime(until=86400.0))
    assert not first.changes
    assert first.lacking == "one bin; at least two are needed"


def command(*arguments):
    return CliRunner().invoke(app, ["profile", "watch", *map(str, arguments)])


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        (["--event", "cycels"], '--event: unknown event "cycels"; there are cpu, samples'),
        (
            ["--since", "3d"],
            '--since: should be at most 2024-10-05T00:11Z, when the last visit began, got "2024-10-07T00:00Z"',
        ),
        (
            ["--until", "0s"],
            '--until: should be after 2024-10-04T00:00Z, when the first visit began, got "2024-10-04T00:00Z"',
        ),
        (
            ["--since", "1d", "--until", "12h"],
            '--until: should be after since, 2024-10-05T00:00Z, got "2024-10-04T12:00Z"',
        ),
        (["--bin", "5h"], '--bin: should divide a day, such as 1h, 90min or 6h, or be a number of days, got "5h"'),
        (["--bin", "36h"], '--bin: should divide a day, such as 1h, 90min or 6h, or be a number of days, got "36h"'),
        (["--bin", "1s"], '--bin: should be at least 24s, so that there are at most 4,000 bins, got "1s"'),
    ],
)
def test_options_that_do_not_fit_the_data_are_refused_with_what_would_do(healthy, options, refused):
    ran = command(healthy, *options)
    assert (ran.exit_code, ran.stderr.splitlines()) == (2, [refused])


def test_all_options_that_do_not_fit_are_refused_at_once(healthy):
    assert len(command(healthy, "--event", "x", "--since", "3d", "--bin", "5h").stderr.splitlines()) == 3


def test_the_width_that_a_refusal_names_is_taken(healthy):
    assert watch([healthy], "cpu", span=WatchedTime(width_s=24.0)).bins <= 4_000


def test_where_nothing_can_be_compared_that_is_said_and_fails(healthy):
    """All visits of a day began in its first hour: one bin of three days, or of one day."""
    for options in (["--bin", "3d"], ["--until", "1d"]):
        ran = command(healthy, "--event", "cpu", *options)
        assert "1 bin of " in ran.stdout
        assert "nothing was compared: one bin; at least two are needed" in ran.stdout
        assert "no function is shown" not in ran.stdout
        assert "hours of the day" not in ran.stdout
        assert command(healthy, "--event", "cpu", "--fail", *options).exit_code == 2
    assert ran.exit_code == 0


def test_where_no_function_is_small_what_could_be_found_is_said_of_larger_ones(tmp_path):
    answer = watch([small_profile.write(tmp_path / "small")], "cycles", span=WatchedTime(width_s=86400.0))
    assert (answer.bins, answer.lacking) == (4, "")
    [size] = answer.detectable
    assert (size.share, size.functions) == (0.1, 8)
    assert f"growth of a function of 10% of cycles by {math.ceil(100 * size.factor) / 100:g} ×" in shown(answer)
    none = replace(answer, detectable=())
    assert "no function has about 0.01%, 0.1%, 1%, 3%, 10%, 30% of cycles" in shown(none)


@pytest.mark.parametrize("seed", [1, 5])
def test_few_visits_that_vary_much_are_no_changes(tmp_path, seed):
    """Counts of 24 visits differ by more than half, so that days differ, too: two functions were named."""
    assert not watch([small_profile.write(tmp_path / "small", seed)], "cycles").changes


def test_bins_of_days_say_that_hours_are_not_compared(grown):
    answer = watch([grown], "cpu", span=WatchedTime(width_s=86400.0))
    assert "bins are as wide as a day: hours of the day are not compared" in answer.notes
    assert [change.function for change in answer.changes] == [f"f{GROWN}"]


def test_the_command_fails_on_growth_if_asked(grown, healthy):
    def status(folder, *more):
        return CliRunner().invoke(app, ["profile", "watch", str(folder), "--event", "cpu", *more]).exit_code

    assert (status(grown), status(grown, "--fail"), status(healthy, "--fail")) == (0, 1, 0)


def test_functions_that_all_have_too_few_samples_are_said_to_be_too_few(tmp_path):
    """It ended in an IndexError."""
    (tmp_path / "few.folded").write_text("main;f 5\nmain;g 7\n")
    assert "nothing was compared" in shown(watch([tmp_path / "few.folded"], "samples"))
    (tmp_path / "days").mkdir()
    answer = watch([write(tmp_path / "days", stream(9, "watched profile"), samples=1)], "cpu")
    assert (answer.changes, answer.detectable) == ((), ())
    assert answer.lacking
    assert answer.lacking in shown(answer)
