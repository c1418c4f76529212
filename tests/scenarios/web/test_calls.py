from analysis.profiling.database import Database
from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.query import Query
from scenarios.profiling.files import import_files
from scenarios.web.application import application
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.small_profile import FUNCTIONS
from tests.helpers.web_pages import SIDES, ask, expected, harmless


def test_the_flame_graph_adds_up(pages, small_profile):
    """Every frame's children weigh at most as much as it does, and the root is all samples with stacks."""
    root = ask(pages, "/flame.json").json()
    assert root["value"] == expected(small_profile, "cpu_time")["value"].sum()

    def check(frame):
        children = frame.get("children", [])
        assert sum(child["value"] for child in children) <= frame["value"]
        for child in children:
            check(child)

    check(root)
    of = expected(small_profile, "cpu_time").groupby("application")["value"].sum()
    assert {child["name"]: child["value"] for child in root["children"]} == dict(of)
    assert all([each["name"] for each in child["children"]] == ["main"] for child in root["children"])
    merged = ask(pages, "/flame.json?by=function").json()
    assert [(child["name"], child["value"]) for child in merged["children"]] == [("main", root["value"])]


def test_rare_root_frames_are_drawn_as_one_and_nothing_is_lost(pages, small_profile, monkeypatch):
    monkeypatch.setattr("scenarios.web.calls._MOST_ROOTS", 2)
    of = expected(small_profile, "cpu_time").groupby("machine")["value"].sum().sort_values()
    root = ask(pages, "/flame.json?by=machine").json()
    frames = {child["name"]: child["value"] for child in root["children"]}
    largest = {str(machine): int(value) for machine, value in of.iloc[-2:].items()}
    assert frames == {**largest, "all others": int(of.iloc[:-2].sum())}
    assert root["value"] == of.sum()


def test_the_flame_difference_of_equals_is_nothing(pages):
    def deltas(frame):
        yield frame["delta"]
        for child in frame.get("children", []):
            yield from deltas(child)

    same = ask(pages, "/flamediff.json?a=day=1&b=day=1").json()
    assert set(deltas(same)) == {0}
    other = ask(pages, f"/flamediff.json?{SIDES}").json()
    assert set(deltas(other)) != {0}


def test_a_call_graph_has_as_many_calls_as_wanted(pages):
    text = "".join(harmless(ask(pages, "/callgraph?edges=2")).said)
    assert sum("->" in line for line in text.splitlines()) == 2
    for edges in ("0", "151", "1e2", "-1"):
        assert ask(pages, f"/callgraph?edges={edges}").status == 400
    page = harmless(ask(pages, "/callgraph?edges=2&where=application=search"))
    assert not [link for link in page.all("a", "href") if "edges=" in link and not link.startswith("/callgraph")]


def test_every_program_has_its_own_main_in_the_call_graph(pages, small_profile):
    """One node for the `main`s of all programs made a star of which nothing could be learnt."""
    text = "".join(harmless(ask(pages, "/callgraph?edges=150")).said)
    programs = sorted(expected(small_profile, "cpu_time")["application"].unique())
    assert len(programs) > 1
    assert sum("[label=" in line and '"main\\n' in line for line in text.splitlines()) == len(programs)
    assert sum("subgraph cluster_" in line for line in text.splitlines()) == len(programs)
    with Database([small_profile]) as database:
        query = Query("cpu_time", ())
        for whole, apart in (
            (database.edges(query), database.edges(query, apart=("application",))),
            (database.inclusive(query), database.inclusive(query, apart=("application",))),
        ):
            keys = ["caller", "function"] if "caller" in whole else ["function"]
            sums = apart.groupby(keys)["value"].sum()
            assert sums.to_dict() == whole.set_index(keys)["value"].to_dict()
        for program in programs:
            alone = database.edges(query.restricted("application", program))
            mine = database.edges(query, apart=("application",)).query("application == @program")
            assert mine.drop(columns="application").reset_index(drop=True).equals(alone)


def test_the_call_graph_is_drawn_from_text_that_no_name_breaks_out_of(pages):
    answer = ask(pages, "/callgraph")
    page = harmless(answer)
    assert page.count("pre") == 1
    text = "".join(page.said)
    dot = text[text.index("digraph") : text.rindex("}") + 1]
    drawn = [line for line in dot.splitlines() if "->" in line]
    assert 0 < len(drawn) <= 150
    assert (
        sum(line.lstrip().startswith("n") and "[label=" in line for line in dot.splitlines()) >= len(set(FUNCTIONS)) - 1
    )


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
    assert ask(pages, "/found.json?find=nosuch").json() == {"value": 0, "total": total, "functions": 0}
    later = ask(pages, "/found.json?find=main&a=day=0&b=day=1").json()
    assert (
        later["value"] == expected(small_profile, "cpu_time", lambda rows: rows["start_s"] // 86400 == 1)["value"].sum()
    )
    for wrong in ("/found.json", "/found.json?find=a&find=b", "/found.json?find=a&top=x"):
        assert ask(pages, wrong).status == 400


def test_pages_of_stacks_as_deep_as_an_importer_takes_are_made(tmp_path):
    """16,384 frames: more than any writer or reader of JSON that recurses could take."""
    stack = tuple(Frame(f"f{number % 9}", "a") for number in range(16_384))
    (tmp_path / "deep.pb.gz").write_bytes(write_pprof(profile_of([Measure("samples")], [(stack, (7,))])))
    import_files([tmp_path / "deep.pb.gz"], tmp_path / "made")
    pages = application(tmp_path / "made")
    for path in ("/flame.json", "/flamediff.json"):
        answer = ask(pages, path)
        assert answer.status == 200
        assert answer.text.count('"name":"f') == 16_384
    for path in ("/flame", "/flamediff", "/callgraph"):
        assert ask(pages, path).status == 200


def test_a_flame_graph_asks_for_its_stacks_once(pages, monkeypatch):
    """It used to ask for each of twenty root frames, and for all together to subtract them."""
    asked = []
    for name in ("stacks", "apart"):
        usual = getattr(Database, name)

        def counted(self, *args, usual=usual, **more):
            asked.append(args[0])
            return usual(self, *args, **more)

        monkeypatch.setattr(Database, name, counted)
    assert ask(pages, "/flame.json").status == 200
    assert len(asked) == 1
