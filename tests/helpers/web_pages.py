"""Pages as a browser would see them, asked of the application without a network, and what pandas says of the same."""

import asyncio
import json
from dataclasses import dataclass
from html.parser import HTMLParser

import pandas as pd
from starlette.applications import Starlette

from tests.helpers.small_profile import EVENTS

VOID = {"meta", "link", "input", "br", "hr", "img"}
SIDES = "a=day=0&b=day=1"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    def json(self):
        return json.loads(self.text)


def ask(
    app: Starlette, url: str, method: str = "GET", host: str | None = "localhost:8000", accept: str = "*/*"
) -> Answer:
    """Send one request straight to the application."""
    return asyncio.run(answered(app, url, method, host, accept))


async def answered(
    app: Starlette, url: str, method: str = "GET", host: str | None = "localhost:8000", accept: str = "*/*"
) -> Answer:
    """Send one of several requests."""
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
        "headers": [(b"accept", accept.encode()), *([] if host is None else [(b"host", host.encode())])],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 50000),
    }
    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], headers, body.decode("utf-8", "replace"))


def frame_paths(answer: dict, tree: int = 0) -> list[tuple[str, ...]]:
    """Return the path of each frame of a drawing, in the order of its columns."""
    frames, names = answer["trees"][tree], answer["functions"]["name"]
    paths: list[tuple[str, ...]] = []
    for parent, function in zip(frames["parent"], frames["function"], strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), names[function]))
    return paths


class Reader(HTMLParser):
    """Collects tags, refuses pages whose tags do not close in order, and tables that do not scroll in their own box."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.boxes: list[bool] = []
        self.tags: list[tuple[str, dict]] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.tags.append((tag, dict(attrs)))
        assert tag != "table" or any(self.boxes)
        if tag not in VOID:
            self.open.append(tag)
            self.boxes.append("wide" in (dict(attrs).get("class") or "").split())

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, tag
        self.boxes.pop()
        assert self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        self.said.append(data)

    def count(self, tag: str) -> int:
        return sum(each == tag for each, _ in self.tags)

    def all(self, tag: str, attribute: str) -> list[str]:
        return [attributes[attribute] for each, attributes in self.tags if each == tag and attribute in attributes]


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
