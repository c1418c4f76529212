import asyncio
from urllib.parse import urlencode, urlsplit

import pytest

from scenarios.web.application import DATA, FILES, PAGES
from tests.helpers.small_profile import HOSTILE
from tests.helpers.web_pages import SIDES, ask, harmless

TABLED = (
    "/",
    "/watch",
    "/changes",
    "/query",
    "/query?by=application,compiler,day&where=platform=old&since=1d&until=3d",
    "/diff?" + SIDES,
    "/callgraph",
    "/flame",
    "/flamediff?" + SIDES,
    "/source",
    "/source?file=../../../../etc/passwd&hash=h3",
    "/rollouts",
    "/rollouts?where=application=search",
    "/stability",
    "/values?key=application&to=/flame",
    "/regress?at=2d",
)
HOSTILE_VALUES = (
    "'; DROP TABLE samples; --",
    '" OR 1=1 --',
    "1) UNION SELECT content FROM read_text('/etc/passwd') --",
    "../../../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}{% raw %}",
    "javascript:alert(1)",
    "\0",
    "é\u202e🂡\udfff".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    "9" * 400,
    "-1",
    "1e308",
    "nan",
    "x" * 5000,
    "=",
    "function=",
    "function=" + HOSTILE,
    "cycles\r\nSet-Cookie: a=b",
)
PARAMETERS = (
    "event",
    "by",
    "where",
    "since",
    "until",
    "top",
    "a",
    "b",
    "file",
    "hash",
    "k",
    "at",
    "name",
    "unheard",
    "view",
    "focus",
    "zoom",
    "find",
    "key",
    "to",
    "rows",
)


@pytest.mark.parametrize("url", TABLED)
def test_every_page_is_a_well_formed_table_without_scripts(pages, url):
    answer = ask(pages, url)
    assert answer.status == 200
    page = harmless(answer)
    assert page.count("table") >= 1
    assert page.count("caption") == page.count("table")
    assert page.count("h1") == 1
    assert page.count("td") >= 2


def test_every_route_is_covered(pages):
    """No page may be left out of the tests above; questions have tests of their own."""
    tested = {urlsplit(url).path for url in TABLED}
    assert {path for path in PAGES if not path.startswith("/questions")} == tested


def test_every_link_of_every_page_leads_somewhere(pages):
    """Follow links two deep, each kind of page at most a few times."""
    seen, waiting = set(), [(url, 0) for url in TABLED]
    while waiting:
        url, depth = waiting.pop(0)
        if url in seen or len(seen) > 32:
            continue
        seen.add(url)
        answer = ask(pages, url)
        assert answer.status == 200 or urlsplit(url).path == "/source", (url, answer.text[-400:])
        if depth < 2 and answer.headers["content-type"].startswith("text/html"):
            links = [link for link in harmless(answer).all("a", "href") if link.startswith("/")]
            waiting += [(link, depth + 1) for link in links[depth :: 1 + 3 * depth]]
    assert len(seen) > 30


@pytest.mark.parametrize("path", [*(path for path in PAGES if "{" not in path), *DATA, *FILES])
def test_nothing_gets_through_a_parameter(pages, path):
    """Each hostile value in turn, in all parameters at once and in one alone, which takes turns."""
    for index, value in enumerate(HOSTILE_VALUES):
        one = PARAMETERS[index % len(PARAMETERS)]
        for parameters in ({one: value}, dict.fromkeys(PARAMETERS, value)):
            check_hostile(pages, path, parameters)


@pytest.mark.parametrize("name", PARAMETERS)
def test_nothing_gets_through_any_parameter_of_the_query_view(pages, name):
    for value in HOSTILE_VALUES:
        check_hostile(pages, "/query.json", {name: value})


def check_hostile(pages, path, parameters):
    answer = ask(pages, f"{path}?{urlencode(parameters)}")
    assert answer.status in {200, 400, 404, 414}, (path, parameters)
    assert "Traceback" not in answer.text
    assert "root:" not in answer.text
    assert "set-cookie" not in answer.headers
    if answer.status == 414:
        return
    if path in FILES and answer.status == 200:
        assert answer.headers["content-disposition"].startswith("attachment")
    elif path in DATA:
        assert answer.headers["content-type"] == "application/json"
        answer.json()
    else:
        harmless(answer)


def test_what_is_wrong_is_said_all_at_once_with_the_nearest_names(pages):
    answer = ask(pages, "/query?event=cycels&top=0&since=soon&unheard=1")
    assert answer.status == 400
    said = " ".join(harmless(answer).said)
    for text in ("top: should be a whole number", "since: should be a time", "unheard: is no parameter"):
        assert text in said
    answer = ask(pages, "/query?event=cycels")
    assert answer.status == 400
    assert "did you mean cycles?" in " ".join(harmless(answer).said)
    assert ask(pages, "/query?where=application=serch").status == 400
    assert ask(pages, "/query?by=function,function").status == 400


def test_huge_requests_are_refused(pages):
    assert ask(pages, "/query?" + "&".join(["where=application=search"] * 101)).status == 400
    assert ask(pages, "/query?where=" + "x" * 20_000).status == 414
    assert ask(pages, "/query?top=10001").status == 400
    assert ask(pages, "/query?by=" + ",".join(["function", "file", "line", "day", "build", "kernel"])).status == 400


def test_a_page_that_breaks_says_so_and_not_how(pages, monkeypatch):
    """The terminal gets the reason, the browser does not."""

    def broken(*_):
        raise RuntimeError("secret")

    monkeypatch.setattr("analysis.profiling.database.Database.query", broken)
    for path in ("/query", "/query.json"):
        answer = ask(pages, path)
        assert answer.status == 500
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text


def test_many_pages_at_once_are_what_they_are_one_by_one(pages):
    urls = [
        f"/query.json?by={by}&where=day={day}" for by in ("function", "application", "compiler") for day in range(4)
    ]
    alone = {url: ask(pages, url).text for url in urls}

    async def together():
        return await asyncio.gather(*(asyncio.to_thread(ask, pages, url) for url in urls * 3))

    for url, answer in zip(urls * 3, asyncio.run(together()), strict=True):
        assert answer.text == alone[url]
