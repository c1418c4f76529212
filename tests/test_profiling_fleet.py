"""Files of machines drawn at random: one collection with the files' own totals, and intervals between machines."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from analysis.profiling.formats.fleet import NOBODY, SampleError, drawn
from analysis.profiling.formats.foreign import Frame, Measure, Origin, Profile, Sample, made
from analysis.profiling.formats.tables import to_tables
from scenarios.cli import app


def profile(period, values, **more):
    named = made(
        [Measure("cpu", "nanoseconds", period)], [((Frame(name),), (value,)) for name, value in values.items()]
    )
    return Profile(named.measures, named.frames, named.samples, **more)


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
        Profile((Measure("cycles", "events", period),), frame, samples, (Origin(platform=name),))
        for period, name in ((10, "old"), (15, "new"), (20, "new"))
    ]
    tables = drawn(to_tables(files), machines=30)
    assert tables["rates"].set_index("platform")["period"].to_dict() == {"old": 10, "new": 5}
    assert total(tables) == {"f": 1800}


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


@pytest.fixture
def halves(tmp_path):
    """Two drawn sets of machines, of which the later ones spend twice as much in one function; 24 machines each."""
    rng = np.random.default_rng(5)
    for half, scale in (("before", 1), ("after", 2)):
        for machine in range(24):
            own = rng.lognormal(sigma=0.1, size=12) * (60 * scale, *range(100, 320, 20))
            lines = [f"main;{name} {count}\n" for name, count in zip("fghijklmnopq", own.astype(int), strict=True)]
            (tmp_path / f"{half}-{machine}.folded").write_text("".join(lines))
        done = wsc("profile", "import", *tmp_path.glob(f"{half}-*"), "--drawn-from", 480, "--out", tmp_path / half)
        assert done.exit_code == 0, done.output
        assert "each of 24 visits stands for 20 machines" in done.output
        assert re.search(r"^24 files: samples: [\d,]+ samples", done.output, re.MULTILINE)
    return tmp_path


def test_shares_of_drawn_files_have_intervals_and_a_dearer_function_is_found(halves):
    asked = json.loads(wsc("profile", "query", halves / "before", "--json").stdout)
    assert asked["confidence"] == 0.95
    assert all(row["low"] < row["share"] < row["high"] for row in asked["rows"])
    found = json.loads(wsc("profile", "regress", halves / "before", halves / "after", "--json").stdout)
    assert found["event"] == "samples"
    assert [row["function"] for row in found["alarms"]] == ["f"]
    assert found["alarms"][0]["dimension"] in {"application", "everywhere"}  # no file says more
    assert found["alarms"][0]["low"] < 2 < found["alarms"][0]["high"]


def test_an_event_that_is_not_there_is_a_fault(halves):
    done = wsc("profile", "regress", halves / "before", halves / "after", "--event", "cycles")
    assert done.exit_code == 2
    assert 'before: unknown event "cycles"; there are samples' in done.stderr


def test_the_same_profile_twice_is_a_fault(halves):
    file, copy = halves / "after-3.folded", halves / "copy.folded"
    copy.write_bytes(file.read_bytes())
    done = wsc("profile", "import", halves / "after-1.folded", file, copy, "--drawn-from", 40, "--out", halves / "x")
    assert done.exit_code == 2
    assert done.stderr.replace("\n", "").endswith(f"{copy}: holds the very samples of {file}")


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
    assert "--drawn-from: 24 profiles are a small sample of at least 48 machines, got 40" in done.stderr
    assert not (halves / "x").exists()
