"""Files of machines drawn at random: one collection with the files' own totals, and intervals between machines."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.profiling.formats.fleet import NOBODY, SampleError, drawn
from analysis.profiling.formats.foreign import ForeignProfile, Frame, Measure, Origin, Sample
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.formats.tables import to_tables
from analysis.profiling.intervals import share_intervals
from scenarios.commands.app import app
from tests.helpers.foreign_profiles import profile_of


def profile(period, values, **more):
    named = profile_of(
        [Measure("cpu", "nanoseconds", period)], [((Frame(name),), (value,)) for name, value in values.items()]
    )
    return ForeignProfile(named.measures, named.frames, named.samples, **more)


def total(tables):
    """The events of the fleet by function, as a reader of the tables would sum them."""
    rows = tables["samples"].merge(tables["processes"], on="process").merge(tables["visits"], on="visit")
    rows = rows.merge(tables["rates"], on=["collection", "platform", "event"], validate="many_to_one")
    rows = rows.merge(tables["locations"], on="location")
    return (rows["count"] * rows["period"] * rows["duty"] * rows["weight"]).groupby(rows["function"]).sum().to_dict()


def test_each_visit_stands_for_as_many_machines_and_values_are_those_of_the_files():
    files = [profile(10, {"f": 70, "g": 30}), profile(15, {"f": 45}), profile(6, {"g": 12})]
    tables = drawn(to_tables(files), machines=21)
    assert tables["visits"]["weight"].tolist() == [7, 7, 7]
    assert total(tables) == {"f": 7 * (70 + 45), "g": 7 * (30 + 12)}
    assert tables["samples"]["taken"].tolist() == [7, 3, 3, 2]


def test_files_of_one_period_keep_their_counts():
    files = [profile(10, {"f": 70}), profile(10, {"f": 20})]
    tables = drawn(to_tables(files), machines=9)
    assert tables["samples"]["count"].tolist() == [7, 2]
    assert "taken" not in tables["samples"]


def test_platforms_keep_periods_of_their_own():
    frame, samples = (Frame("f"),), (Sample((0,), (60,)),)
    files = [
        ForeignProfile((Measure("cycles", "events", period),), frame, samples, (Origin(platform=name),))
        for period, name in ((10, "old"), (15, "new"), (20, "new"))
    ]
    tables = drawn(to_tables(files), machines=30)
    assert tables["rates"].set_index("platform")["period"].to_dict() == {"old": 10, "new": 5}
    assert total(tables) == {"f": 1800}


def test_a_visit_of_a_tenth_of_the_time_has_ten_times_the_weight():
    files = [profile(10, {"f": 300, "g": 0}, length_s=300.0), profile(10, {"g": 30}, length_s=30.0)]
    tables = drawn(to_tables(files), machines=7)
    assert tables["visits"]["weight"].tolist() == [4, 40]
    assert total(tables) == {"f": 4 * 300, "g": 40 * 30}


@pytest.mark.parametrize("lengths", [(0.0, 0.0, 0.0), (30.0, 30.0, 30.0), (30.0, 30.0011, 30.2)])
def test_lengths_that_are_unknown_or_differ_by_less_than_a_percent_leave_weights_alone(lengths):
    files = [profile(10, {"f": 70}, length_s=length_s) for length_s in lengths]
    assert drawn(to_tables(files), machines=21)["visits"]["weight"].tolist() == [7, 7, 7]


@pytest.mark.parametrize("machines", [6, 40, 6000])
def test_whole_weights_are_within_half_a_percent_of_the_rates(machines):
    lengths = np.array([300.0, 160.0, 29.9])
    files = [profile(10, {"f": 70}, length_s=length_s) for length_s in lengths]
    visits = drawn(to_tables(files), machines)["visits"]
    stood_for = visits["weight"] * visits["length_s"]
    assert stood_for.max() / stood_for.min() < 1.0101


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            [profile(1, {"f": 1}, length_s=30.0), profile(1, {"f": 2})],
            "1 of 2 profiles does not say how long it took$",
        ),
        (
            [profile(1, {"f": 1}, length_s=30.0, span=True), profile(1, {"f": 2}, length_s=20.0, span=True)],
            "first and last samples are 20 s to 30 s apart, which does not say how long each took$",
        ),
        (
            [profile(1, {"f": 1}, length_s=30.0, span=True), profile(1, {"f": 2}, length_s=0.0, span=True)],
            "first and last samples are 0 s to 30 s apart",
        ),
    ],
)
def test_lengths_that_cannot_be_known_are_refused_unless_they_are_said_to_be_equal(files, problem):
    spans = any(file.span for file in files)
    with pytest.raises(SampleError, match=f"^{problem}"):
        drawn(to_tables(files), machines=40, spans=spans)
    assert drawn(to_tables(files), machines=40, spans=spans, equal=True)["visits"]["weight"].tolist() == [20, 20]


def test_spans_of_samples_that_are_nearly_the_same_are_equal_lengths():
    files = [profile(1, {"f": 1}, length_s=length_s, span=True) for length_s in (29.1, 29.9)]
    assert drawn(to_tables(files), machines=40, spans=True)["visits"]["weight"].tolist() == [20, 20]


def test_a_level_is_no_count_over_time_and_refused_where_lengths_differ():
    level = (Measure("inuse_space", "bytes"), Measure("alloc_space", "bytes"))
    files = [
        ForeignProfile(level, (Frame("f"),), (Sample((0,), (60, 90)),), length_s=length_s, name=str(length_s))
        for length_s in (30.0, 60.0)
    ]
    with pytest.raises(SampleError, match=r"^inuse_space is a level, .* 30 s to 60 s$"):
        drawn(to_tables(files), machines=40)


@pytest.mark.statistical
def test_intervals_hold_the_fleets_share_though_busier_kinds_are_visited_shorter():
    """False alarms: of a true 95% of 100 draws fewer than 88 hold in 1.5 of 1000 seeds."""
    rng = np.random.default_rng(7)
    kind = rng.random(2000) < 0.5
    rate = np.column_stack([np.where(kind, 40.0, 4.0), np.where(kind, 8.0, 20.0)]) * rng.lognormal(0, 0.3, (2000, 2))
    length_s = np.where(kind, 30.0, 300.0)
    both = [profile(1, {"f": 1}, length_s=30.0), profile(1, {"f": 2}, length_s=300.0)]
    short, long = drawn(to_tables(both), 2000)["visits"]["weight"]
    true = rate[:, 0].sum() / rate.sum()

    def holds(weight):
        machines = rng.choice(2000, 20, replace=False)
        counts = rng.poisson(rate[machines] * length_s[machines, None]).ravel()
        rows = {"f": ["f", "g"] * 20, "visit": np.repeat(np.arange(20), 2), "samples": counts}
        value = counts * np.repeat(weight[machines], 2)
        found = share_intervals(pd.DataFrame(rows).assign(value=value), cluster="visit").set_index("f").loc["f"]
        return found["low"] <= true <= found["high"]

    assert sum(holds(np.where(kind, short, long)) for _ in range(100)) >= 88
    assert sum(holds(np.ones(2000)) for _ in range(20)) < 10  # counts alone: 3% in a longer trial


def test_an_application_that_a_file_names_stays_and_a_file_name_is_none():
    named = profile(1, {"f": 1}, name="a.pb", main="/usr/bin/search")
    tables = drawn(to_tables([named, profile(1, {"f": 1}, name="b.pb")]), machines=10)
    assert tables["processes"]["application"].tolist() == ["search", NOBODY]


@pytest.mark.parametrize(("files", "machines", "problem"), [(1, 40, "2 machines, got 1"), (3, 5, "at least 6")])
def test_what_is_no_small_sample_is_refused(files, machines, problem):
    with pytest.raises(SampleError, match=problem):
        drawn(to_tables([profile(1, {"f": 1})] * files), machines)


def wsc(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Two drawn sets of machines, of which the later ones spend twice as much in one function; 24 machines each."""
    folder = tmp_path_factory.mktemp("sets")
    rng = np.random.default_rng(5)
    for half, scale in (("before", 1), ("after", 2)):
        for machine in range(24):
            own = rng.lognormal(sigma=0.1, size=12) * (60 * scale, *range(100, 320, 20))
            lines = [f"main;{name} {count}\n" for name, count in zip("fghijklmnopq", own.astype(int), strict=True)]
            (folder / f"{half}-{machine}.folded").write_text("".join(lines))
        done = wsc("profile", "import", *folder.glob(f"{half}-*"), "--drawn-from", 480, "--out", folder / half)
        assert done.exit_code == 0, done.output
        assert "each of 24 visits stands for 20 machines" in done.output
        assert re.search(r"^24 files: samples: [\d,]+ samples", done.output, re.MULTILINE)
    return folder


@pytest.fixture
def halves(sets, tmp_path):
    """A copy of the two sets, to write beside."""
    return shutil.copytree(sets, tmp_path / "halves")


def test_shares_of_drawn_files_have_intervals_and_a_more_expensive_function_is_found(halves):
    asked = json.loads(wsc("profile", "query", halves / "before", "--json").stdout)
    assert asked["confidence"] == 0.95
    assert all(row["low"] < row["share"] < row["high"] for row in asked["rows"])
    found = json.loads(wsc("profile", "regress", halves / "before", halves / "after", "--json").stdout)
    assert found["event"] == "samples"
    assert [row["function"] for row in found["alarms"]] == ["f"]
    assert found["alarms"][0]["dimension"] in {"application", "everywhere"}  # no file says more
    assert found["alarms"][0]["low"] < 2 < found["alarms"][0]["high"]


def test_files_and_folders_of_files_are_compared_and_alarms_can_be_a_status(halves):
    """Files as they are, named by a pattern or by their folder, give the alarms of the imported ones."""
    for side in ("before", "after"):
        (halves / f"of-{side}").mkdir()
        for file in halves.glob(f"{side}-*.folded"):
            (halves / f"of-{side}" / file.name).write_bytes(file.read_bytes())
    imported = wsc("profile", "regress", halves / "before", halves / "after", "--json", "--fail")
    assert imported.exit_code == 1
    alarms = [(row["function"], round(row["factor"], 3)) for row in json.loads(imported.stdout)["alarms"]]
    for sides in (("of-before", "of-after"), ("before-*.folded", "after-*.folded")):
        done = wsc("profile", "regress", *(halves / side for side in sides), "--json")
        assert done.exit_code == 0, done.output
        assert [(row["function"], round(row["factor"], 3)) for row in json.loads(done.stdout)["alarms"]] == alarms
    back = wsc("profile", "regress", halves / "after", halves / "before", "--json", "--fail")
    assert back.exit_code == 0, back.output
    cheaper = json.loads(back.stdout)
    assert cheaper["alarms"] == []
    assert [row["function"] for row in cheaper["improvements"]] == [name for name, _ in alarms]
    assert (
        "1 function became cheaper by over 20%" in wsc("profile", "regress", halves / "after", halves / "before").stdout
    )


def test_an_event_that_is_not_there_is_a_fault(halves):
    done = wsc("profile", "regress", halves / "before", halves / "after", "--event", "cycles")
    assert done.exit_code == 2
    assert 'before: unknown event "cycles"; there are samples' in done.stderr


def test_the_same_profile_twice_is_left_out_and_said(halves):
    file, copy = halves / "after-3.folded", halves / "copy.folded"
    copy.write_bytes(file.read_bytes())
    done = wsc("profile", "import", halves / "after-1.folded", file, copy, "--drawn-from", 40, "--out", halves / "x")
    assert done.exit_code == 0, done.output
    assert f"{copy}: left out: holds the very samples of {file}" in done.stdout.replace("\n", "")
    assert "each of 2 visits stands for 20 machines" in done.stdout


def test_a_machine_that_was_visited_twice_is_told(halves):
    head = "# hostname : web1\nprog 1 [000] 1.0: {} cycles:\n\tffff f+0x1 (/usr/bin/prog)\n\n"
    for name, period in (("a", 1000), ("b", 3000)):
        (halves / f"{name}.txt").write_text(head.format(period))
    done = wsc("profile", "import", halves / "a.txt", halves / "b.txt", "--drawn-from", 40, "--out", halves / "x")
    assert done.exit_code == 0, done.output
    assert "1 visit to machines visited before" in done.output


def test_too_many_machines_drawn_are_a_fault_of_the_option(halves):
    done = wsc("profile", "import", *halves.glob("after-*"), "--drawn-from", 40, "--out", halves / "x")
    assert done.exit_code == 2
    assert done.stderr == (
        "--drawn-from: should be at least 48, twice the 24 files: intervals take these for a small sample of all "
        "machines; leave it out to ask of these machines alone, got 40\n"
    )
    assert not (halves / "x").exists()


def pprof(folder, name, values, length_s):
    file = folder / f"{name}.pb"
    file.write_bytes(write_pprof(profile(1, values, length_s=length_s)))
    return file


def test_ten_times_as_long_a_visit_counts_no_more_wherever_shares_are_asked(tmp_path):
    rng = np.random.default_rng(3)
    files, rates = [], []
    for machine in range(10):
        length_s = 300 if machine < 5 else 30
        own = rng.integers(90, 110, 2) * ([9, 1] if machine < 5 else [1, 9])
        rates.append(own)
        files.append(pprof(tmp_path, f"m{machine}", dict(zip("fg", (own * length_s).tolist(), strict=True)), length_s))
    made = wsc("profile", "import", *files, "--drawn-from", 240, "--out", tmp_path / "fleet")
    assert made.exit_code == 0, made.output
    said = "each of 10 visits stands for 24 machines, for 300 s: visits of 30 s to 300 s are weighted by rate"
    assert said in made.output.replace("\n", " ")
    f, g = np.sum(rates, axis=0)
    (row,) = (row for row in asked(tmp_path / "fleet")["rows"] if row["function"] == "f")
    assert row["share"] == pytest.approx(f / (f + g))
    assert row["low"] < 0.5 < row["high"]
    assert row["value"] == 24 * 300 * f
    between = json.loads(wsc("profile", "diff", tmp_path / "fleet", tmp_path / "fleet", "--json").stdout)
    assert {row["function"]: row["share_a"] for row in between["rows"]}["f"] == pytest.approx(f / (f + g))


def asked(folder):
    return json.loads(wsc("profile", "query", folder, "--json").stdout)


def test_files_that_do_not_say_their_lengths_are_taken_as_equally_long_and_a_note_says_so(halves):
    words = ("profile", "import", *halves.glob("after-*"), "--drawn-from", 400)
    done = wsc(*words, "--out", halves / "x")
    assert "no file says how long it took: all are taken as equally long" in done.output
    said = wsc(*words, "--equal-lengths", "--out", halves / "y")
    assert said.exit_code == 0
    assert "how long" not in said.output
    assert asked(halves / "x")["rows"] == asked(halves / "y")["rows"]


def test_lengths_are_said_to_be_equal_only_of_machines_that_were_drawn(halves):
    done = wsc("profile", "import", halves / "after-1.folded", "--equal-lengths", "--out", halves / "x")
    assert done.exit_code == 2
    assert "--equal-lengths: is for --drawn-from" in done.stderr


def test_a_mix_of_known_and_unknown_lengths_is_a_fault_that_names_the_option(halves):
    files = pprof(halves, "p", {"f": 3}, 30.0), halves / "after-1.folded"
    words = ("profile", "import", *files, "--drawn-from", 40, "--out", halves / "x")
    done = wsc(*words)
    assert done.exit_code == 2
    problem = "--drawn-from: 1 of 2 profiles does not say how long it took; --equal-lengths takes all as equally long"
    assert problem in done.stderr.replace("\n", " ")
    assert not (halves / "x").exists()
    assert wsc(*words, "--equal-lengths").exit_code == 0


def test_lengths_that_files_say_are_not_said_to_be_equal(tmp_path):
    files = [pprof(tmp_path, str(at), {"f": 3 + at}, length_s) for at, length_s in enumerate((10.0, 10.0, 100.0))]
    words = ("profile", "import", *files, "--drawn-from", 30, "--out", tmp_path / "x")
    done = wsc(*words, "--equal-lengths")
    assert done.exit_code == 2
    assert done.stderr == "--equal-lengths: the files say 10 s to 100 s; leave --equal-lengths out\n"
    assert not (tmp_path / "x").exists()
    assert wsc(*words).exit_code == 0
    alike = ("profile", "import", *files[:2], "--drawn-from", 30, "--equal-lengths", "--out", tmp_path / "y")
    assert wsc(*alike).exit_code == 0


def test_where_lengths_differ_a_file_that_does_not_say_its_own_is_to_be_left_out(tmp_path):
    files = [pprof(tmp_path, str(at), {"f": 3 + at}, length_s) for at, length_s in enumerate((10.0, 100.0, 0.0))]
    done = wsc("profile", "import", *files, "--drawn-from", 30, "--out", tmp_path / "x")
    assert done.exit_code == 2
    assert done.stderr == (
        "--drawn-from: 1 of 3 profiles does not say how long it took; files that do say their lengths, "
        "10 s to 100 s, differ: leave the others out or record them anew\n"
    )


def test_a_level_may_be_weighted_equally_and_a_note_names_the_lengths(tmp_path):
    for at, length_s in enumerate((30.0, 60.0)):
        heap = profile_of([Measure("inuse_space", "bytes")], [((Frame("f"),), (60 + at,))])
        (tmp_path / f"{at}.pb").write_bytes(write_pprof(replace(heap, length_s=length_s)))
    words = ("profile", "import", *tmp_path.glob("*.pb"), "--drawn-from", 30, "--out", tmp_path / "x")
    assert "--equal-lengths takes all as equally long" in wsc(*words).stderr
    done = wsc(*words, "--equal-lengths")
    assert done.exit_code == 0
    said = "lengths of 30 s to 60 s are left out of account: right for levels such as inuse_space, wrong for counts"
    assert said in done.output


@pytest.mark.parametrize("option", [(), ("--equal-lengths",)])
def test_a_length_under_a_millisecond_beside_longer_ones_is_a_fault_of_its_file(tmp_path, option):
    files = [pprof(tmp_path, str(at), {"f": 3 + at}, length_s) for at, length_s in enumerate((10.0, 1e-6))]
    done = wsc("profile", "import", *files, "--drawn-from", 30, *option, "--out", tmp_path / "x")
    assert done.exit_code == 2
    problem = "its length should be at least 0.001 s beside files of up to 10 s: leave it out or record it anew"
    assert f"{files[1]}: {problem}, got 1e-06 s" in done.stderr.splitlines()
