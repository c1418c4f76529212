import asyncio
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlencode, urlsplit

import pandas as pd
import pytest
from starlette.applications import Starlette

from analysis.profiling.query import Query
from analysis.profiling.questions import QUESTIONS
from scenarios import profile_ask, profile_files
from scenarios.web import site
from scenarios.web.annotation import source
from scenarios.web.application import DATA, PAGES, application
from scenarios.web.asked import Asked
from scenarios.web.site import Site
from tests.small_profile import EVENTS, FILES, FUNCTIONS, HOSTILE, write

VOID = {"meta", "link", "input", "br", "hr", "img"}
SIDES = "a=day=0&b=day=1"
TABLED = (
    "/",
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
    "/regress?at=2",
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
PARAMETERS = ("event", "by", "where", "since", "until", "top", "a", "b", "file", "hash", "k", "at", "name", "unheard")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    def json(self):
        return json.loads(self.text)


def ask(app: Starlette, url: str, method: str = "GET", host: str | None = "localhost:8000") -> Answer:
    """Send one request straight to the application."""
    path, _, query = url.partition("?")
    start: dict = {}
    body = bytearray()

    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        for message in asked:
            return message
        return await asyncio.Event().wait()

    async def send(message):
        if message["type"] == "http.response.start":
            start.update(message)
        else:
            body.extend(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [] if host is None else [(b"host", host.encode())],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 50000),
    }
    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], headers, body.decode("utf-8", "replace"))


class Reader(HTMLParser):
    """Collects tags, refuses pages whose tags do not close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        self.said.append(data)

    def count(self, tag: str) -> int:
        return sum(each == tag for each, _ in self.tags)

    def all(self, tag: str, attribute: str) -> list[str]:
        return [attributes[attribute] for each, attributes in self.tags if each == tag and attribute in attributes]


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    return write(tmp_path_factory.mktemp("profile") / "run")


@pytest.fixture(scope="module")
def app(profile):
    return application(profile)


def harmless(answer: Answer) -> Reader:
    """Check that a page is well formed and that nothing of it runs or leads elsewhere."""
    page = Reader(answer.text)
    assert all(source.startswith("/static/") for source in page.all("script", "src"))
    assert page.count("script") == len(page.all("script", "src"))
    assert all(link.startswith(("/", "#")) for link in page.all("a", "href")), page.all("a", "href")
    assert all(action.startswith("/") for action in page.all("form", "action"))
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert not [1 for _, attributes in page.tags if "style" in attributes]
    assert "iframe" not in {tag for tag, _ in page.tags}
    return page


@pytest.mark.parametrize("url", TABLED)
def test_every_page_is_a_well_formed_table_without_scripts(app, url):
    answer = ask(app, url)
    assert answer.status == 200
    page = harmless(answer)
    assert page.count("table") >= 1
    assert page.count("caption") == page.count("table")
    assert page.count("h1") == 1
    assert page.count("td") >= 2


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_a_page(app, name):
    """A question that this small profile cannot answer says so on its page, form included."""
    answer = ask(app, f"/questions/{name}")
    assert answer.status == 200
    page = harmless(answer)
    assert page.count("table") + page.count("li") >= 1
    assert set(page.all("input", "name")) == set(QUESTIONS[name].parameters)
    assert f"/questions/{name}" in page.all("form", "action")
    assert any(href == f"/questions/{name}" for href in harmless(ask(app, "/questions")).all("a", "href"))


def test_a_question_is_answered_and_told_its_parameters(app):
    answer = ask(app, "/questions/deprecated?function=memcpy&event=cpu_time&top=5")
    assert answer.status == 200
    assert "deflate" in harmless(answer).said
    assert ask(app, "/questions/deprecated?function=memcpyy").status == 400
    assert ask(app, "/questions/versions?top=0").status == 400
    assert ask(app, "/questions/versions?function=f").status == 400
    assert ask(app, "/questions/version").status == 404
    assert ask(app, "/questions/<script>alert(1)").status == 404
    assert harmless(ask(app, "/questions/<script>alert(1)")).count("li")
    assert ask(app, "/questions/..%2f..%2fetc").status == 404


def test_a_profile_that_was_not_drawn_has_no_intervals_and_says_why(tmp_path):
    file = tmp_path / "stacks.folded"
    file.write_text("main;read 12\nmain 4\n")
    profile_files.import_files([file], tmp_path / "made")
    page = harmless(ask(application(tmp_path / "made"), "/query"))
    assert not {"low", "high"} & set(page.said)
    assert "no collector drew these machines at random" in "".join(page.said)


def test_every_route_is_covered(app):
    """No page may be left out of the tests above; questions have tests of their own."""
    tested = {urlsplit(url).path for url in TABLED}
    assert {path for path in PAGES if not path.startswith("/questions")} == tested


def test_every_link_of_every_page_leads_somewhere(app):
    """Follow links two deep, each kind of page at most a few times."""
    seen, waiting = set(), [(url, 0) for url in TABLED]
    while waiting:
        url, depth = waiting.pop(0)
        if url in seen or len(seen) > 45:
            continue
        seen.add(url)
        answer = ask(app, url)
        assert answer.status == 200 or urlsplit(url).path == "/source", (url, answer.text[-400:])
        if depth < 2 and answer.headers["content-type"].startswith("text/html"):
            links = [link for link in harmless(answer).all("a", "href") if link.startswith("/")]
            waiting += [(link, depth + 1) for link in links[depth :: 1 + 3 * depth]]
    assert len(seen) > 40


def expected(profile, event, where=lambda rows: rows["count"] > 0):
    """Return the weighted samples with all dimensions, by pandas."""
    rows = pd.read_parquet(profile / "samples.parquet").merge(
        pd.read_parquet(profile / "locations.parquet"), on="location"
    )
    rows = rows.merge(pd.read_parquet(profile / "processes.parquet"), on="process", suffixes=("_code", ""))
    rows = rows.merge(pd.read_parquet(profile / "visits.parquet"), on="visit")
    rows = rows[(rows["event"] == event)]
    rows = rows[where(rows)]
    return rows.assign(value=rows["count"] * dict(EVENTS)[event] * 6 * rows["weight"])


def test_the_query_view_has_the_numbers_that_pandas_has(app, profile):
    answer = ask(app, "/query.json?event=llc_misses&by=function&where=platform=old&top=3").json()
    rows = expected(profile, "llc_misses", lambda rows: rows["platform"] == "old")
    by = rows.groupby("function")[["count", "value"]].sum()
    assert answer["total"] == {"samples": int(rows["count"].sum()), "value": int(rows["value"].sum())}
    assert len(answer["rows"]) == 3
    for row in answer["rows"]:
        assert (row["samples"], row["value"]) == tuple(by.loc[row["function"]])
        assert row["share"] == pytest.approx(row["value"] / answer["total"]["value"], rel=1e-12)
    page = harmless(ask(app, "/query?event=llc_misses&by=function&where=platform=old&top=3"))
    assert answer["rows"][0]["function"] in " ".join(page.said)
    assert "low" in page.said
    assert "high" in page.said


def test_refining_restricts_and_groups_anew(app):
    page = harmless(ask(app, "/query?by=application"))
    link = next(link for link in page.all("a", "href") if "where=application" in link)
    asked = parse_qsl(urlsplit(link).query)
    assert ("by", "function") in asked
    only = next(value for name, value in asked if name == "where" and value.startswith("application="))
    refined = ask(app, link)
    assert refined.status == 200
    assert f"{only.replace('=', ' = ')}" in harmless(refined).said


def test_the_flame_graph_adds_up(app, profile):
    """Every frame's children weigh at most as much as it does, and the root is all samples with stacks."""
    root = ask(app, "/flame.json").json()
    assert root["value"] == expected(profile, "cpu_time")["value"].sum()

    def check(frame):
        children = frame.get("children", [])
        assert sum(child["value"] for child in children) <= frame["value"]
        for child in children:
            check(child)

    check(root)
    of = expected(profile, "cpu_time").groupby("application")["value"].sum()
    assert {child["name"]: child["value"] for child in root["children"]} == dict(of)
    assert all([each["name"] for each in child["children"]] == ["main"] for child in root["children"])
    merged = ask(app, "/flame.json?by=function").json()
    assert [(child["name"], child["value"]) for child in merged["children"]] == [("main", root["value"])]


def test_rare_root_frames_are_drawn_as_one_and_nothing_is_lost(app, profile, monkeypatch):
    monkeypatch.setattr("scenarios.web.calls._MOST_ROOTS", 2)
    of = expected(profile, "cpu_time").groupby("machine")["value"].sum().sort_values()
    root = ask(app, "/flame.json?by=machine").json()
    frames = {child["name"]: child["value"] for child in root["children"]}
    largest = {str(machine): int(value) for machine, value in of.iloc[-2:].items()}
    assert frames == {**largest, "all others": int(of.iloc[:-2].sum())}
    assert root["value"] == of.sum()


@pytest.mark.parametrize(
    ("url", "a", "b"),
    [
        ("/diff", "day=0", "day=3"),
        ("/flamediff", "day=0", "day=3"),
        ("/diff?since=1d&until=3d", "day=1", "day=2"),
        ("/diff?a=platform=old", "platform=old", "everything"),
        ("/diff?where=day=2", "everything", "everything"),
    ],
)
def test_a_difference_begins_with_the_last_day_against_the_first(app, url, a, b):
    said = " ".join("".join(harmless(ask(app, url)).said).split())
    assert f"A: {a}. B: {b}." in said
    assert ("Say in a field" in said) == (a == b)


def test_a_difference_that_nobody_asked_for_is_that_of_its_days(app):
    page, asked = (harmless(ask(app, url)) for url in ("/diff", "/diff?a=day=0&b=day=3"))
    assert page.said == asked.said


def test_home_tells_one_event_and_folds_the_others(app, profile):
    """The share without symbols is that of pandas."""
    page = harmless(ask(app, "/"))
    rows = expected(profile, "cycles")
    hidden = rows[~rows["symbolised"]]["value"].sum() / rows["value"].sum()
    said = " ".join("".join(page.said).split())
    assert f"in the fleet; {hidden:.1%} in code without symbols" in said
    assert page.count("details") == len(EVENTS) - 1
    assert page.count("table") == 2 * len(EVENTS)


def test_a_call_graph_has_as_many_calls_as_wanted(app):
    text = "".join(harmless(ask(app, "/callgraph?edges=2")).said)
    assert sum("->" in line for line in text.splitlines()) == 2
    for edges in ("0", "151", "1e2", "-1"):
        assert ask(app, f"/callgraph?edges={edges}").status == 400
    page = harmless(ask(app, "/callgraph?edges=2&where=application=search"))
    assert not [link for link in page.all("a", "href") if "edges=" in link and not link.startswith("/callgraph")]


def test_the_flame_difference_of_equals_is_nothing(app):
    def deltas(frame):
        yield frame["delta"]
        for child in frame.get("children", []):
            yield from deltas(child)

    same = ask(app, "/flamediff.json?a=day=1&b=day=1").json()
    assert set(deltas(same)) == {0}
    other = ask(app, f"/flamediff.json?{SIDES}").json()
    assert set(deltas(other)) != {0}


def test_the_call_graph_is_drawn_from_text_that_no_name_breaks_out_of(app):
    answer = ask(app, "/callgraph")
    page = harmless(answer)
    assert page.count("pre") == 1
    text = "".join(page.said)
    dot = text[text.index("digraph") : text.rindex("}") + 1]
    drawn = [line for line in dot.splitlines() if "->" in line]
    assert 0 < len(drawn) <= 150
    assert (
        sum(line.lstrip().startswith("n") and "[label=" in line for line in dot.splitlines()) >= len(set(FUNCTIONS)) - 1
    )


def test_source_is_annotated_line_by_line(app, profile):
    """Line 2 of the file shows the samples that pandas counts there; the file's name is never a path."""
    page = harmless(ask(app, "/source?event=cycles&file=../../../../etc/passwd&hash=h3"))
    rows = expected(profile, "cycles", lambda rows: rows["file"] == FILES[3])
    by_line = rows.groupby("line")["count"].sum()
    said = "".join(page.said)
    assert all(str(count) in said for count in by_line)
    titles = "".join(page.all("td", "title")).replace("\u202f", "")
    assert all(f"{value} events" in titles for value in rows.groupby("line")["value"].sum())
    assert "root:" not in said
    assert "\tif (a < 2 && b) /* <i>&amp; */" in page.said


def test_contents_under_one_file_name_are_not_added(tmp_path):
    """A second content of a file, with other functions, takes samples of its own at the same line numbers."""
    folder = write(tmp_path / "run")
    stored = pd.read_parquet(folder / "locations.parquet")
    stored.loc[stored["file"] == FILES[1], "file"] = FILES[0]
    stored.to_parquet(folder / "locations.parquet", index=False)
    opened = Site(folder)
    try:
        asked = Asked(Query("cycles")).only("file", FILES[0])
        for content in (0, 1):
            page = source(opened, [("event", "cycles"), ("file", FILES[0]), ("hash", "h0")][: 2 + (content == 0)])
            shown = {line.number: line.samples for line in page.shown["lines"] if line.samples}
            rows = expected(folder, "cycles", lambda rows, to=page.shown["hash"]: rows["file_hash"] == to)
            assert shown == rows.groupby("line")["count"].sum().to_dict()
            assert sum(shown.values()) < opened.database.total(asked.query)[0]
    finally:
        opened.close()


def test_alarms_are_those_of_the_command_and_kept(profile, monkeypatch):
    """One function of six costs four times as much in a new revision; the second answer asks the profile nothing."""
    rows = pd.DataFrame({"function": list("fghijk") * 30, "application": "a", "machine": sorted([*range(30)] * 6)})
    before = rows.assign(samples=100, value=[20, 200, 200, 200, 200, 200] * 30)
    after = rows.assign(revision="new", samples=100, value=[80, 200, 200, 200, 200, 200] * 30)
    asked = []

    def cells(_, since_s=None, until_s=None):
        asked.append((since_s, until_s))
        return before if since_s is None else after

    monkeypatch.setattr(profile_ask, "cells", cells)
    monkeypatch.setattr(site, "cells", cells)
    (alarm,) = profile_ask.regress(profile, profile, 2 * 86400.0)["alarms"]
    app = application(profile)
    asked.clear()
    page = harmless(ask(app, "/regress?at=2"))
    for told in ("f", "revision", "new", f"{alarm['factor']:.4g}", f"{alarm['cost']:.2%}"):
        assert told in page.said
    for same in ("2.0", "2d", "48h", "172800s"):
        assert ask(app, "/regress?at=2").text == ask(app, f"/regress?at={same}").text
    assert asked == [(None, 172800.0), (172800.0, None)]


def test_a_day_that_parts_nothing_is_refused(app):
    for day, told in (
        ("0", "no samples of cycles before it"),
        ("99", "after it"),
        ("x", "a number of days"),
        ("1w", "36h"),
    ):
        answer = ask(app, f"/regress?at={day}")
        assert answer.status == 400
        assert told in answer.text
    assert "/regress?at=2" in harmless(ask(app, "/regress")).all("a", "href")
    assert "/regress" in harmless(ask(app, "/")).all("a", "href")


@pytest.mark.parametrize("file", ["/etc/passwd", "../small_profile.py", "visits.parquet", "..", ""])
def test_no_file_but_stored_sources_is_shown(app, file):
    answer = ask(app, f"/source?{urlencode({'file': file, 'hash': 'h3'})}")
    assert answer.status in ({400, 404} if file else {200})
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/static/../site.py",
        "/static/%2e%2e/site.py",
        "/static//etc/passwd",
        "/static/..%2f..%2fcli.py",
        "/..",
        "/../etc",
        "/static/",
        "/static",
    ],
)
def test_static_files_are_those_of_the_package_alone(app, path):
    assert ask(app, path).status in {404, 405, 307}
    assert ask(app, "/static/style.css").status == 200


@pytest.mark.parametrize("path", [*(path for path in PAGES if "{" not in path), *DATA])
def test_nothing_gets_through_a_parameter(app, path):
    """Each hostile value in turn, in all parameters at once and in one alone, which takes turns."""
    for index, value in enumerate(HOSTILE_VALUES):
        one = PARAMETERS[index % len(PARAMETERS)]
        for parameters in ({one: value}, dict.fromkeys(PARAMETERS, value)):
            check_hostile(app, path, parameters)


@pytest.mark.parametrize("name", PARAMETERS)
def test_nothing_gets_through_any_parameter_of_the_query_view(app, name):
    for value in HOSTILE_VALUES:
        check_hostile(app, "/query.json", {name: value})


def check_hostile(app, path, parameters):
    answer = ask(app, f"{path}?{urlencode(parameters)}")
    assert answer.status in {200, 400, 404, 414}, (path, parameters)
    assert "Traceback" not in answer.text
    assert "root:" not in answer.text
    assert "set-cookie" not in answer.headers
    if answer.status == 414:
        return
    if path in DATA:
        assert answer.headers["content-type"] == "application/json"
        answer.json()
    else:
        harmless(answer)


def test_what_is_wrong_is_said_all_at_once_with_the_nearest_names(app):
    answer = ask(app, "/query?event=cycels&top=0&since=soon&unheard=1")
    assert answer.status == 400
    said = " ".join(harmless(answer).said)
    for text in ("top: should be a whole number", "since: should be a time", "unheard: is no parameter"):
        assert text in said
    answer = ask(app, "/query?event=cycels")
    assert answer.status == 400
    assert "did you mean cycles?" in " ".join(harmless(answer).said)
    assert ask(app, "/query?where=application=serch").status == 400
    assert ask(app, "/query?by=function,function").status == 400


def test_huge_requests_are_refused(app):
    assert ask(app, "/query?" + "&".join(["where=application=search"] * 101)).status == 400
    assert ask(app, "/query?where=" + "x" * 20_000).status == 414
    assert ask(app, "/query?top=10001").status == 400
    assert ask(app, "/query?by=" + ",".join(["function", "file", "line", "day", "build", "kernel"])).status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_pages_are_read_and_nothing_else(app, method):
    answer = ask(app, "/query", method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_is_answered_as_get_is(app):
    assert ask(app, "/query", "HEAD").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.io", "", None, "[::2]"]
)
def test_foreign_hosts_are_refused(app, host):
    """A name that was made to point here (DNS rebinding) gets nothing."""
    answer = ask(app, "/", host=host)
    assert answer.status == 400
    assert "main" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]:8000", "[::1]"])
def test_this_machine_is_answered(app, host):
    assert ask(app, "/questions", host=host).status == 200


@pytest.mark.parametrize("url", ["/", "/nowhere", "/static/app.js", "/query.json", "/query?top=x"])
def test_every_answer_says_what_a_browser_may_do(app, url):
    headers = ask(app, url).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_a_page_that_breaks_says_so_and_not_how(app, monkeypatch):
    """The terminal gets the reason, the browser does not."""

    def broken(*_):
        raise RuntimeError("secret")

    monkeypatch.setattr("analysis.profiling.database.Database.query", broken)
    for path in ("/query", "/query.json"):
        answer = ask(app, path)
        assert answer.status == 500
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text


def test_many_pages_at_once_are_what_they_are_one_by_one(app):
    urls = [
        f"/query.json?by={by}&where=day={day}" for by in ("function", "application", "compiler") for day in range(4)
    ]
    alone = {url: ask(app, url).text for url in urls}

    async def together():
        return await asyncio.gather(*(asyncio.to_thread(ask, app, url) for url in urls * 3))

    for url, answer in zip(urls * 3, asyncio.run(together()), strict=True):
        assert answer.text == alone[url]
