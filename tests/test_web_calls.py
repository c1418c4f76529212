from tests.small_profile import FUNCTIONS
from tests.web_pages import SIDES, ask, expected, harmless


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
