import itertools
import json
import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.counted_shares import CountedStacks
from analysis.profiling.database import Database
from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.intervals import ClusteredProfile, ShareMoments
from analysis.profiling.query import Query
from scenarios.profiling.files import import_files
from scenarios.web.application import FILES, application
from scenarios.web.differences import Side, frame_intervals
from scenarios.web.rooted import rooted_paths
from scenarios.web.tree import PathFrames, Tree
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.profile_tables import random_tables, write_folder
from tests.helpers.small_profile import FUNCTIONS, PATHS
from tests.helpers.web_pages import SIDES, ask, expected, frame_paths, harmless


def stacks_of(profile):
    """Return every stack with its application before it, root first, and its value, by pandas."""
    rows = expected(profile, "cpu_time")
    by = rows.groupby(["application", "stack"])["value"].sum()
    return {(app, *(FUNCTIONS[number] for number in PATHS[stack])): int(value) for (app, stack), value in by.items()}


def framed(answer, tree=0):
    """Return path, value and own of each frame of a drawing."""
    frames, paths = answer["trees"][tree], frame_paths(answer, tree)
    assert len(set(paths)) == len(paths)
    return {path: (value, own) for path, value, own in zip(paths, frames["value"], frames["own"], strict=True)}


def drawn(paths):
    """Return path, value and own of each frame, by counting, of paths in the order in which they are drawn."""
    values, own = Counter(), Counter()
    for path, value in paths:
        own["all", *path] += value
        for length in range(len(path) + 1):
            values["all", *path[:length]] += value
    return {path: (value, own[path]) for path, value in values.items()}


def test_every_view_has_what_the_stacks_through_its_frames_have(pages, small_profile):
    """From the root down, from the sampled function up, and around a recursive function, by its outermost call."""
    stacks = stacks_of(small_profile)
    assert framed(ask(pages, "/flame.json").json()) == drawn(stacks.items())
    assert framed(ask(pages, "/flame.json?view=flame").json()) == drawn(stacks.items())
    inverted = [(path[::-1], value) for path, value in stacks.items()]
    assert framed(ask(pages, "/flame.json?view=callers").json()) == drawn(inverted)
    around = ask(pages, "/flame.json?view=sandwich&focus=serve").json()
    middle = {path: path.index("serve") if "serve" in path else None for path in stacks}
    below = [(() if at is None else path[at:], stacks[path]) for path, at in middle.items()]
    above = [(() if at is None else path[: at + 1][::-1], stacks[path]) for path, at in middle.items()]
    assert framed(around, 0) == drawn(below)
    assert framed(around, 1) == drawn(above)
    through = sum(value for path, value in stacks.items() if "serve" in path)
    assert framed(around)["all", "serve"][0] == framed(around, 1)["all", "serve"][0] == through


def test_functions_say_what_they_have_everywhere_and_where_they_are(pages, small_profile):
    answer = ask(pages, "/flame.json").json()
    told = pd.DataFrame(answer["functions"]).set_index("name")
    with Database([small_profile]) as database:
        inclusive = database.inclusive(Query("cpu_time", ())).set_index("function")
    assert {name: int(told.loc[name, "value"]) for name in inclusive.index} == inclusive["value"].astype(int).to_dict()
    assert {name: int(told.loc[name, "own"]) for name in inclusive.index} == inclusive["own"].astype(int).to_dict()
    assert tuple(told.loc["serve", ["image", "file", "line"]]) == ("search", "app/serve.cc", 1)


def test_without_scripts_the_function_in_focus_has_its_callers_and_callees(pages, small_profile):
    stacks = stacks_of(small_profile)
    page = harmless(ask(pages, "/flame?view=sandwich&focus=deflate"))
    said = " ".join(page.said)
    assert "Callers of deflate" in said
    assert "Called by deflate" in said
    total = sum(stacks.values())
    called = sum(value for path, value in stacks.items() if "deflate" in path and path[-1] == "memcpy")
    assert f"{called / total:.2%}" in said


@pytest.mark.parametrize(
    ("asked", "status", "says"),
    [
        ("view=sideways", 400, 'unknown view "sideways"'),
        ("view=sandwich", 400, "give focus=NAME"),
        ("focus=nosuch", 404, 'unknown function "nosuch"; there are '),
        ("focus=deflatte", 404, "did you mean deflate?"),
        ("event=cycles&focus=deflate", 404, "cpu_time has some"),
        ("zoom=a&zoom=b", 400, "zoom: is given 2 times"),
    ],
)
def test_a_view_that_is_none_is_refused(pages, asked, status, says):
    for path in ("/flame", "/flamediff"):
        answer = ask(pages, f"{path}?{asked}")
        if path == "/flame" or status == 400:
            assert answer.status == status
            assert says in " ".join(harmless(answer).said)


def test_another_question_keeps_view_search_and_colours(pages):
    for path in ("/flame?", f"/flamediff?{SIDES}&width=a&"):
        page = harmless(ask(pages, f"{path}view=callers&find=mem&colour=package&show=table"))
        begin = [tag for tag, _ in page.tags].index("form")
        fields = itertools.takewhile(lambda element: element[0] != "label", page.tags[begin + 1 :])
        kept = {attributes["name"]: attributes["value"] for _, attributes in fields}
        more = {"width": "a"} if "width" in path else {}
        assert kept == {"view": "callers", "find": "mem", "colour": "package", "show": "table"} | more
    page = harmless(ask(pages, "/flame?view=sandwich&focus=deflate"))
    assert {"type": "hidden", "name": "view", "value": ""} in [attributes for _, attributes in page.tags]


def test_the_flame_difference_of_equals_is_nothing_in_every_view(pages):
    for view in ("icicle", "callers", "sandwich&focus=serve"):
        for asked, same in (("a=day=1&b=day=1", True), (SIDES, False)):
            trees = ask(pages, f"/flamediff.json?{asked}&view={view}").json()["trees"]
            assert ({delta for tree in trees for delta in tree["delta"]} == {0}) == same


def test_colours_of_a_sandwich_are_corrected_for_the_frames_of_both_halves(pages):
    answer = ask(pages, f"/flamediff.json?{SIDES}&view=sandwich&focus=serve").json()
    known = [each for tree in answer["trees"] for each in tree["significant"] if each is not None]
    assert answer["tested"] == len(known)


def by_visit(path, visit, value):
    """Return what tells the moments of items on paths, each row of one path and visit."""

    def moments(items, _, names):
        first, item = items
        rows = [(own, at) for at, number in enumerate(path.tolist()) for own in item[first[number] : first[number + 1]]]
        item_of, at = np.array(rows).T
        table = pd.DataFrame({"item": item_of, "visit": visit[at], "value": value[at]})
        sums = table.groupby(["item", "visit"], as_index=False)["value"].sum()
        keys = pd.DataFrame({"item": list(names)})
        numbers = sums["item"].to_numpy(), sums["visit"].to_numpy(), sums["value"].to_numpy()
        size = np.bincount(visit, value).astype(np.float64)
        return ShareMoments.of(ClusteredProfile(keys, numbers[0], numbers[1], numbers[2], numbers[2], size))

    return moments


def test_intervals_of_frames_hold_the_truth_as_often_as_they_say():
    """400 profiles of 40 visits with clustered samples: 95% intervals of three frames hold the truth 93 to 97 times.

    1,200 intervals, at most three correlated in one profile: a standard error of about 1%; false alarms about 1%.
    """
    draws = np.random.default_rng(5)
    paths = [("a",), ("a", "b"), ("a", "c"), ("d",)]
    share = np.array([0.1, 0.25, 0.05, 0.6])
    held = 0
    for _ in range(400):
        mix = draws.dirichlet(share * 40, size=40)
        counts = np.array([draws.multinomial(200, own) for own in mix])
        visit, path = np.nonzero(counts)
        tree = Tree(PathFrames.of(paths), counts.sum(axis=0))
        side = Side(counts.sum(axis=0).astype(float), by_visit(path, visit, counts[visit, path].astype(float)))
        (limits,) = frame_intervals([tree], side)
        truth = {("a",): 0.4, ("a", "b"): 0.25, ("a", "c"): 0.05}
        held += sum(low <= truth[own] <= high for own in truth for low, high in [limits[tree.find(own)]])
    assert 0.925 <= held / 1200 <= 0.975


def test_a_flame_graph_has_intervals_or_says_why_it_has_none(pages, tmp_path):
    answer = ask(pages, "/flame.json").json()
    assert answer["lacking"] == ""
    tree, whole = answer["trees"][0], answer["value"]
    rows = zip(tree["low"], tree["value"], tree["high"], strict=True)
    known = [(low, value / whole, high) for low, value, high in rows if low is not None and value < whole]
    assert known
    assert all(low < share < high for low, share, high in known)
    for path in ("/flame.json?event=cycles", f"/flamediff.json?event=cycles&{SIDES}"):
        assert ask(pages, path).json()["lacking"] == "no intervals: no samples have call paths"
    (tmp_path / "one.pb.gz").write_bytes(write_pprof(profile_of([Measure("samples")], [((Frame("f", "a"),), (7,))])))
    import_files([tmp_path / "one.pb.gz"], tmp_path / "made")
    alone = ask(application(tmp_path / "made"), "/flame.json").json()
    assert "no intervals" in alone["lacking"]
    assert set(alone["trees"][0]["low"]) == {None}


@pytest.mark.parametrize("drawn", [True, False])
def test_what_intervals_rest_on_is_kept_where_there_can_be_any(tmp_path, drawn):
    tables = random_tables(2, rows=400)
    tables["visits"] = tables["visits"].assign(weight=12 if drawn else 1, power_w=np.nan)
    with Database([write_folder(tmp_path, tables)]) as database:
        paths = rooted_paths(database, [Query("cpu_time", ())])
    assert len(paths.samples) == drawn
    assert len(paths.stack) == (len(paths.events[0]) if drawn else 0)


def test_exported_profiles_have_what_the_page_has(pages, small_profile):
    total = sum(stacks_of(small_profile).values())
    written = {path: ask(pages, path) for path in FILES}
    assert all(answer.status == 200 for answer in written.values())
    assert all("attachment" in answer.headers["content-disposition"] for answer in written.values())
    content = json.loads(written["/profile.speedscope.json"].text)
    (profile,) = content["profiles"]
    names = [frame["name"] for frame in content["shared"]["frames"]]
    pairs = zip(profile["samples"], profile["weights"], strict=True)
    assert {tuple(names[place] for place in stack): weight for stack, weight in pairs} == stacks_of(small_profile)
    folded = [line.rpartition(" ")[2] for line in written["/profile.folded"].text.splitlines()]
    assert sum(map(int, folded)) == total
    rows = written["/query.csv"].text.splitlines()
    assert rows[0] == "function,samples,value,share,low,high"
    assert len(rows) > len(FUNCTIONS) - 2


def test_what_is_found_is_what_the_table_has_however_small_its_frames(pages, small_profile):
    """Functions by name, by a part of several names, root frames, and nothing: each stack counts once."""
    total = int(expected(small_profile, "cpu_time")["value"].sum())
    page = harmless(ask(pages, "/flame"))
    for name in ("memcpy", "deflate"):
        found = ask(pages, f"/found.json?find={name.upper()}").json()
        assert found["total"] == total
        assert found["functions"] == 1
        assert f"{found['value'] / total:.2%}" in page.said
    assert ask(pages, "/found.json?find=mai").json()["value"] == total
    search = expected(small_profile, "cpu_time", lambda rows: rows["application"] == "search")["value"].sum()
    assert ask(pages, "/found.json?find=search&by=application").json()["value"] == search
    nothing = ask(pages, "/found.json?find=nosuch").json()
    assert not any(nothing.pop("largest").values())
    assert nothing == {"value": 0, "total": total, "functions": 0}
    later = ask(pages, "/found.json?find=main&a=day=0&b=day=1").json()
    assert (
        later["value"] == expected(small_profile, "cpu_time", lambda rows: rows["start_s"] // 86400 == 1)["value"].sum()
    )
    for wrong in ("/found.json", "/found.json?find=a&find=b", "/found.json?find=a&top=x"):
        assert ask(pages, wrong).status == 400


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """Three hundred functions rarer than two hundred that are called for most of a profile, too small to be drawn."""
    folder = tmp_path_factory.mktemp("rare")
    stacks = [((Frame(f"leaf{number}", "a"), Frame("main", "a")), (10**6,)) for number in range(250)]
    stacks += [((Frame(f"rare{number}", "a"), Frame("main", "a")), (1 + number % 2,)) for number in range(300)]
    (folder / "rare.pb.gz").write_bytes(write_pprof(profile_of([Measure("samples")], stacks)))
    import_files([folder / "rare.pb.gz"], folder / "made")
    return application(folder / "made"), 250 * 10**6 + 450


def test_a_search_finds_functions_of_which_no_frame_is_drawn(rare, monkeypatch):
    pages, total = rare
    usual = Tree.largest
    monkeypatch.setattr(Tree, "largest", lambda tree: usual(tree)[:252])
    frames = ask(pages, "/flame.json").json()
    assert not any(name.startswith("rare") for name in frames["functions"]["name"])
    assert (frames["functions_in_all"], frames["listed"]) == (551, 200)
    for top, count in ((50, 200), (250, 250), (1000, 300)):
        matches = ask(pages, f"/found.json?find=RARE&top={top}").json()
        assert (matches["value"], matches["total"], matches["functions"]) == (450, total, 300)
        largest = matches["largest"]
        assert len(largest["name"]) == len(set(largest["name"])) == count
        assert all(name.startswith("rare") for name in largest["name"])
        assert largest["value"] == largest["own"] == sorted(largest["value"], reverse=True)
        assert {len(column) for column in largest.values()} == {count}
    assert ask(pages, "/flame.json?top=1000").json()["functions"]["name"].count("rare299") == 1


@pytest.mark.parametrize("path", ["/flame", f"/flamediff?{SIDES}"])
def test_a_search_lists_all_that_match_without_scripts(pages, small_profile, path):
    """The page has a field for it, says how many functions match and their share, and lists these alone."""
    inputs = [attributes for tag, attributes in harmless(ask(pages, path)).tags if tag == "input"]
    assert [field["value"] for field in inputs if field.get("type") == "search" and field.get("name") == "find"] == [""]
    address = f"{path}{'&' if '?' in path else '?'}find=MEMC"
    page = harmless(ask(pages, address))
    matches = ask(pages, address.replace(path.partition("?")[0], "/found.json")).json()
    share = f"{matches['value'] / matches['total']:.2%}"
    assert f"1 function matches “MEMC”: {share} of all." in page.said
    assert "memcpy" in page.said
    assert "deflate" not in page.said
    assert "Call paths" not in page.said
    assert any("Functions that match “MEMC”" in text for text in page.said)


def test_rows_that_a_table_of_functions_has_no_room_for_are_counted_and_linked(rare):
    pages, total = rare
    page = harmless(ask(pages, "/flame?find=rare&top=40"))
    assert any(text.startswith("260 more functions match") for text in page.said)
    assert f"300 functions match “rare”: {450 / total:.2%} of all." in page.said
    (more,) = [link for link in page.all("a", "href") if "top=10000" in link and "find=rare" in link]
    every = harmless(ask(pages, more))
    assert {f"rare{number}" for number in range(300)} <= {text.strip() for text in every.said}
    assert not any("more functions" in text for text in every.said)


def test_pages_of_stacks_as_deep_as_an_importer_takes_are_made(tmp_path):
    """16,384 frames: more than any writer or reader of JSON that recurses could take."""
    stack = tuple(Frame(f"f{number % 9}", "a") for number in range(16_384))
    (tmp_path / "deep.pb.gz").write_bytes(write_pprof(profile_of([Measure("samples")], [(stack, (7,))])))
    import_files([tmp_path / "deep.pb.gz"], tmp_path / "made")
    pages = application(tmp_path / "made")
    for path in ("/flame.json", "/flamediff.json", "/flame.json?view=callers", "/flame.json?focus=f3"):
        answer = ask(pages, path)
        assert answer.status == 200
        assert sum(len(tree["parent"]) for tree in answer.json()["trees"]) > 16_384
    for path in ("/flame", "/flamediff", "/callgraph"):
        assert ask(pages, path).status == 200


def test_a_flame_graph_reads_its_samples_once(pages, monkeypatch):
    """Visit by visit, for frames and their intervals."""
    asked, usual = [], Database.counted

    def counted(self, query, *args, **more):
        asked.append(query.by)
        return usual(self, query, *args, **more)

    monkeypatch.setattr(Database, "counted", counted)
    assert ask(pages, "/flame.json").status == 200
    assert asked == [("visit", "application")]


def test_a_frame_of_everything_has_an_interval_without_width(tmp_path):
    """Rounding alone tells its visits apart: it was said to be between 0 and 100%."""
    for number in range(40):
        lines = [f"main;serve;f{at % 20};g{at} {1 + number * at % 13}" for at in range(60)]
        (tmp_path / f"m{number}.folded").write_text("\n".join(lines) + "\n")
    files = sorted(tmp_path.glob("*.folded"))
    import_files(files, tmp_path / "made", machines=1_000, equal_lengths=True)
    tree = ask(application(tmp_path / "made"), "/flame.json").json()
    columns, names = tree["trees"][0], tree["functions"]["name"]
    for number, value in enumerate(columns["value"]):
        low, high = columns["low"][number], columns["high"][number]
        if number and value == tree["value"]:
            assert (low, high) == (1.0, 1.0), names[columns["function"][number]]
        elif low is not None and number:
            assert 0.0 < low < high < 1.0


@pytest.mark.parametrize("key", ["process", "visit"])
def test_root_frames_may_be_of_processes_and_visits(pages, key):
    answer = ask(pages, f"/flame.json?by={key}").json()
    assert answer["lacking"] == "no intervals: each visit was drawn once"
    assert answer["value"] == ask(pages, "/flame.json").json()["value"]
    assert len(answer["trees"][0]["parent"]) > 20
    assert ask(pages, f"/flamediff.json?by={key}&{SIDES}").status == 200


def test_events_beyond_64_bits_are_whole_numbers(tmp_path):
    for number in range(4):
        stacks = [
            ((Frame("f", "a"), Frame("main", "a")), (2**61 + 1024 * number,)),
            ((Frame("main", "a"),), (2**61,)),
        ]
        (tmp_path / f"{number}.pb.gz").write_bytes(write_pprof(profile_of([Measure("samples")], stacks)))
    import_files(sorted(tmp_path.glob("*.pb.gz")), tmp_path / "made")
    answer = ask(application(tmp_path / "made"), "/flame.json").json()
    assert answer["value"] == 8 * 2**61 + 1024 * 6
    assert sorted(answer["functions"]["own"])[-2:] == [4 * 2**61, 4 * 2**61 + 1024 * 6]


def test_a_profile_that_changes_while_it_is_drawn_is_read_again(tmp_path, monkeypatch):
    """Stacks of the one with the names of the other would be drawn."""
    for name in ("before", "after"):
        (tmp_path / f"{name}.folded").write_text(f"main;{name} 3\nmain 1\n")
        import_files([tmp_path / f"{name}.folded"], tmp_path / name)
    usual, folder = CountedStacks.of.__func__, tmp_path / "before"

    def changing(cls, *args):
        counted = usual(cls, *args)
        for file in (tmp_path / "after").iterdir():
            shutil.copy(file, folder / file.name)
        return counted

    monkeypatch.setattr(CountedStacks, "of", classmethod(changing))
    pages = application(folder)
    answer = ask(pages, "/flame.json")
    assert answer.status != 200 or "before" not in answer.json()["functions"]["name"]
    monkeypatch.undo()
    assert "after" in ask(pages, "/flame.json").json()["functions"]["name"]


def test_a_difference_has_the_functions_of_the_side_that_is_drawn(pages):
    only = ask(pages, "/flamediff.json?a=job=search&b=job=a%26b%20%3Cc%3E").json()
    alone = ask(pages, "/flame.json?where=job=a%26b%20%3Cc%3E").json()
    assert only["functions_in_all"] == alone["functions_in_all"]


def test_the_largest_functions_are_listed_though_no_frame_of_them_is_drawn(pages, monkeypatch):
    answer = ask(pages, "/flame.json").json()
    functions = answer["functions"]
    assert answer["functions_in_all"] == len({*FUNCTIONS} & {*functions["name"]})
    monkeypatch.setattr(Tree, "largest", lambda _tree: np.array([0]))
    assert ask(pages, "/flame.json").json()["trees"][0]["parent"] == [-1]
    listed = ask(pages, "/flame.json").json()["functions"]
    assert (
        dict(zip(listed["name"], listed["own"], strict=True)).items()
        <= dict(zip(functions["name"], functions["own"], strict=True)).items()
    )
    assert {*FUNCTIONS} & {*functions["name"]} <= {*listed["name"]}
