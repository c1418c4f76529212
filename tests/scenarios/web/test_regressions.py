import re
from dataclasses import replace

import pandas as pd

from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.regressions.comparison import AlarmCriteria, CostComparison
from analysis.profiling.regressions.reading import CostReader, ReadSide
from scenarios.profiling import regress as regression
from scenarios.profiling.files import import_files
from scenarios.web.application import application
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.web_pages import ask, harmless


def test_alarms_are_those_of_the_command_and_kept(small_profile, monkeypatch):
    """One function of six costs four times as much in a new revision; the second answer asks the profile nothing."""
    rows = pd.DataFrame({"function": list("fghijk") * 30, "application": "a", "machine": sorted([*range(30)] * 6)})
    before = rows.assign(samples=100, value=[20, 200, 200, 200, 200, 200] * 30)
    after = rows.assign(revision="new", samples=100, value=[80, 200, 200, 200, 200, 200] * 30)
    asked = []

    def add(_reader, _database, _event, span_s, *, later):
        asked.append(span_s)
        return ReadSide(int((after if later else before)["samples"].sum()))

    monkeypatch.setattr(CostReader, "add", add)
    monkeypatch.setattr(CostReader, "comparison", lambda _reader: CostComparison.of(before, after))
    concluded = regression.regress(small_profile, small_profile, 2 * 86400.0)
    (alarm,) = concluded.alarms.to_dict("records")
    pages = application(small_profile)
    asked.clear()
    page = harmless(ask(pages, "/regress?at=2d"))
    for told in ("f", "revision new of a", f"{alarm['factor']:.4g}", f"{alarm['cost']:.2%}"):
        assert told in page.said
    said = " ".join("".join(page.said).split())
    for told in (concluded.verdict(), concluded.could_find(), concluded.cheaper()):
        assert told[1:] in said
    alike = {told.text.replace(f'value="{at}"', "") for at in ("2d", "2.0d", "48h", "172800", "172800s")
             if (told := ask(pages, f"/regress?at={at}"))}  # fmt: skip
    assert len(alike) == 1
    assert asked == [(None, 172800.0), (172800.0, None)]


def test_a_page_takes_criteria_as_the_command_does_and_says_all_faults_at_once(pages, small_profile):
    loose = "min_factor=1.1&min_cost=0&false_alarms=50%25&adjustment=benjamini-hochberg"
    page = harmless(ask(pages, f"/regress?at=2d&{loose}"))
    criteria = AlarmCriteria(0.5, 1.1, 0.0, "benjamini-hochberg")
    concluded = regression.regress(small_profile, None, 2 * 86400.0, criteria=criteria)
    said = " ".join("".join(page.said).split())
    assert concluded.verdict()[1:] in said
    assert "over 10% (share of false alarms among all: 50%)" in said
    assert concluded.could_find()[1:] in said
    wrong = "at=x&event=nosuch&min_factor=0.9&min_cost=-1&false_alarms=1&adjustment=none&top=3"
    answer = ask(pages, f"/regress?{wrong}")
    assert answer.status == 400
    for name in ("at", "event", "min_factor", "min_cost", "false_alarms", "adjustment", "top"):
        assert f"{name}: " in answer.text


def test_events_of_an_imported_profile_are_offered_and_compared(tmp_path):
    """Two machines a day, no cycles: the page takes the first event, and any other that is there."""
    for day in range(2):
        for machine in range(2):
            stack = [((Frame("f", "a"),), (30 + day, 600)), ((Frame("g", "a"),), (70 + machine, 1400))]
            profile = replace(
                profile_of([Measure("samples"), Measure("cpu", "nanoseconds")], stack), start_s=(20_000 + day) * 86400.0
            )
            (tmp_path / f"{day}{machine}.pb.gz").write_bytes(write_pprof(profile))
    import_files(sorted(tmp_path.glob("*.pb.gz")), tmp_path / "made", machines=10)
    pages = application(tmp_path / "made")
    page = harmless(ask(pages, "/regress"))
    assert [text for text in page.said if text in ("cpu", "samples", "cycles")] == ["cpu", "samples"]
    for url, event in (("/regress?at=1d", "cpu"), ("/regress?at=1d&event=samples", "samples")):
        answer = ask(pages, url)
        assert answer.status == 200
        assert f"of {event}" in " ".join("".join(harmless(answer).said).split())
    assert "there are cpu, samples" in ask(pages, "/regress?at=1d&event=cycles").text
    assert "the event samples has no samples after that time" in ask(pages, "/regress?at=99d&event=samples").text


def test_a_day_that_parts_nothing_is_refused(pages):
    for day, told in (
        ("0", "at: the event cycles has no samples before that time"),
        ("99d", "at: the event cycles has no samples after that time"),
        ("2", "samples before"),
        ("x", "a time such as"),
        ("1w", "36h"),
    ):
        answer = ask(pages, f"/regress?at={day}")
        assert answer.status == 400
        assert told in answer.text
    assert "/regress?at=2d" in harmless(ask(pages, "/regress")).all("a", "href")
    assert "/regress" in harmless(ask(pages, "/")).all("a", "href")


def days(folder, starts, machines=10):
    """The page of an import of files that began at these days, without a time."""
    for at, day in enumerate(starts):
        file = replace(profile_of([Measure("samples")], [((Frame("f", "a"),), (30 + at,))]), start_s=day * 86400.0)
        (folder / f"{at}.pb.gz").write_bytes(write_pprof(file))
    import_files(sorted(folder.glob("*.pb.gz")), folder / "made", machines=machines)
    return " ".join("".join(harmless(ask(application(folder / "made"), "/regress")).said).split())


def test_visits_of_one_time_cannot_be_parted_and_the_page_says_what_to_do(tmp_path):
    said = days(tmp_path, [0, 0])
    assert "All visits began on one day, day 0, at the same time, so that no time parts them" in said
    assert "a profile cannot be compared with itself. To compare it with another day, import that as a profile" in said
    assert "give a time between" not in said


def test_a_time_within_the_only_day_is_named_and_taken(tmp_path):
    said = days(tmp_path, [20_000, 20_000, 20_000.5, 20_000.5])
    (time,) = re.findall(r"a time between them, such as (\S+), sets", said)
    assert ask(application(tmp_path / "made"), f"/regress?at={time}").status == 200


def test_days_of_an_import_have_dates(tmp_path):
    said = days(tmp_path, [20_000] * 5 + [20_001.5] * 5, 100)
    assert "before and after 2024-10-05" in said
    pages = application(tmp_path / "made")
    assert "profiled from 2024-10-04 to 2024-10-05 by 10 visits" in " ".join(ask(pages, "/").text.split())
    sides = ask(pages, "/regress?at=1.5d").text
    assert "before 2024-10-05T12:00Z" in sides
    assert not re.findall("day 1.*", sides)
