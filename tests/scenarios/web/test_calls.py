from analysis.profiling.database import Database
from analysis.profiling.query import Query
from tests.helpers.small_profile import FUNCTIONS
from tests.helpers.web_pages import ask, expected, harmless


def test_a_call_graph_has_as_many_calls_as_wanted(pages):
    text = "".join(harmless(ask(pages, "/callgraph?edges=2")).said)
    assert sum("->" in line for line in text.splitlines()) == 2
    for edges in ("0", "151", "1e2", "-1"):
        assert ask(pages, f"/callgraph?edges={edges}").status == 400
    page = harmless(ask(pages, "/callgraph?edges=2&where=application=search"))
    links = [link for link in page.all("a", "href") if "edges=" in link]
    assert all(link.startswith(("/callgraph", "/values")) for link in links)


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


def test_calls_and_functions_of_one_sum_are_those_of_two(small_profile):
    """Asked first, again, and after the functions alone."""
    query, apart = Query("cpu_time", ()), ("application",)
    with Database([small_profile]) as database, Database([small_profile]) as other:
        edges, functions = other.edges(query, apart=apart), other.inclusive(query, apart=apart)
        for own in (database, database, other):
            for most in (1, len(edges)):
                greatest, of, reached = own.graph(query, most, apart=apart)
                assert of == len(edges)
                assert greatest.equals(edges[edges["value"] >= edges["value"].iloc[most - 1]])
                assert reached.equals(functions)


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
