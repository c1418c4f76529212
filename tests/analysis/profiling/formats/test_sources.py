"""Sources of imported profiles: found by the end of their path and kept with a signature, or linked to."""

import re

import pytest
from typer.testing import CliRunner

from analysis.profiling.formats.foreign import ForeignProfile, Frame, Measure, Origin, Sample
from analysis.profiling.formats.links import link_to, parse_link
from analysis.profiling.formats.sources import MOST_BYTES, with_sources
from analysis.profiling.formats.tables import to_tables, write_tables
from analysis.profiling.import_record import ImportRecord
from models.errors import InputError
from scenarios.commands.app import app
from scenarios.web import annotation
from scenarios.web.application import application
from scenarios.web.site import ProfileSite
from tests.helpers.web_pages import Reader, ask


def tables(*files):
    frames = tuple(Frame(f"f{number}", file=file, line=1) for number, file in enumerate(files))
    samples = tuple(Sample((number,), (1,)) for number in range(len(frames)))
    return to_tables([ForeignProfile((Measure("cpu"),), frames, samples)])


def texts(with_text):
    if "sources" not in with_text:
        return {}
    return {file: part["text"].tolist() for file, part in with_text["sources"].groupby("file")}


def test_the_longest_end_of_a_path_counts(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "a.c").write_text("outer\n")
    (tmp_path / "net" / "a.c").write_text("inner\nsecond\n")
    whole, notes = with_sources(
        tables("/build/src/net/a.c", "/build/src/a.c", "C:\\\\x\\\\net\\\\a.c", "b.c"), tmp_path
    )
    assert texts(whole) == {
        "/build/src/net/a.c": ["inner", "second"],
        "/build/src/a.c": ["outer"],
        "C:\\\\x\\\\net\\\\a.c": ["inner", "second"],
    }
    assert notes == [f"{tmp_path}: has 3 of 4 source files; not there: b.c"]
    hashes = whole["locations"].set_index("file")["file_hash"]
    assert hashes["/build/src/net/a.c"] != hashes["/build/src/a.c"]
    assert hashes["b.c"] == ""


def test_nothing_is_read_from_elsewhere_or_that_is_no_text(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "secret.c").write_text("secret\n")
    (tmp_path / "root" / "long.c").write_bytes(b"x" * (MOST_BYTES + 1))
    (tmp_path / "root" / "binary.c").write_bytes(b"\0\1")
    (tmp_path / "root" / "folder.c").mkdir()
    names = ("../secret.c", "a/../../secret.c", "long.c", "binary.c", "folder.c", str(tmp_path / "secret.c"))
    assert texts(with_sources(tables(*names), tmp_path / "root")[0]) == {}
    assert with_sources(tables(""), tmp_path)[1] == [f"{tmp_path}: no place of the profile says its source file"]


def test_known_content_stays_and_later_folders_add_to_it(tmp_path):
    for name, text in (("one", "old"), ("two", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.c").write_text(text)
    (tmp_path / "two" / "b.c").write_text("b")
    first, _ = with_sources(tables("a.c", "b.c"), tmp_path / "one")
    second, notes = with_sources(first, tmp_path / "two")
    assert texts(second) == {"a.c": ["old"], "b.c": ["b"]}
    assert notes == [f"{tmp_path / 'two'}: has 1 of 1 source files"]


def test_an_import_is_annotated_even_if_its_sources_come_later(tmp_path):
    speedscope = (
        '{"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "f", "file":'
        ' "/go/src/a.go", "line": 2}]}, "profiles": [{"type": "sampled", "name": "p", "unit": "none", "startValue": 0,'
        ' "endValue": 1, "samples": [[0]], "weights": [1]}]}'
    )
    (tmp_path / "p.speedscope.json").write_text(speedscope)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.go").write_text("package a\nfunc f() {}\n")
    words = ["profile", "import", str(tmp_path / "p.speedscope.json"), "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, words).exit_code == 0
    done = CliRunner().invoke(app, [*words, "--append", "--source-root", str(tmp_path)])
    assert (done.exit_code, "has 1 of 1 source files" in done.stdout) == (0, True), done.output
    lines = annotation.source(ProfileSite(tmp_path / "out"), [("file", "/go/src/a.go")]).view.lines
    assert [(line.text, line.samples) for line in lines] == [("package a", 0), ("func f() {}", 1)]
    done = CliRunner().invoke(app, [*words, "--append", "--source-root", str(tmp_path / "none")])
    assert (done.exit_code, "--source-root: should be a folder" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("javascript:alert(1)//{path}", "begins with http:// or https://"),
        ("git@github.com:acme/search.git", "begins with http:// or https://"),
        ("ftp://host/{path}", "begins with http:// or https://"),
        ("https://{path}/x", "should name its host"),
        ("https://a:b@host/{path}", "no user or password"),
        ("https://host/{path}/{commit}", "has {commit}: fields are {revision}, {path} and {line}"),
        ("https://host/{path}{", "has {: fields are"),
        ("https://host/{line}", "should have {path}"),
        ('https://host/{path}"x', "no blanks, quotes"),
        ("https://host/a/b", "is no repository of GitHub"),
        ("https://github.com/acme", "should be a repository as https://github.com/OWNER/NAME"),
        ("https://host:99999/{path}", "a port between"),
        ("", "begins with http:// or https://"),
    ],
)
def test_what_is_no_link_is_refused(text, problem):
    with pytest.raises(InputError, match=re.escape(problem)):
        parse_link(text)


def test_a_link_is_escaped_and_stays_in_the_repository():
    def to(link, *place):
        return link_to(dict([parse_link(link)]), *place)

    hub = "https://github.com/acme/search/"
    lab = to("https://gitlab.acme.example/group/sub/search", "src/a.c", 0, "release/1.2")
    assert lab == "https://gitlab.acme.example/group/sub/search/-/blob/release/1.2/src/a.c"
    assert to(hub, 'a"b?c#d%.c', 3) == f"{hub}blob/HEAD/a%22b%3Fc%23d%25.c#L3"
    assert to(hub, "github.com/acme/search/net/a.go", 3) == f"{hub}blob/HEAD/net/a.go#L3"
    for elsewhere in (
        "github.com/acme/other/a.go",
        "/abs/a.c",
        "C:\\a.c",
        "a/../../b.c",
        "node:fs",
        "https://x/a.js",
        "",
    ):
        assert to(hub, elsewhere) == "", elsewhere
    for revision in ("../../evil", "a..b", "x y", "-x", "/x", "v1/../..", "[none]", ""):
        assert to(hub, "a.c", 1, revision) == f"{hub}blob/HEAD/a.c#L1"
    assert to("C:\\src=https://host/{path}", "C:\\src\\net\\a.c") == "https://host/net/a.c"
    assert to("/src=https://host/{path}", "/source/a.c") == ""
    longest = dict(map(parse_link, ["/=https://host/{path}", "/go=https://go.example/{path}?l={line}"]))
    assert link_to(longest, "/go/a.go") == "https://go.example/a.go?l=1"
    assert link_to(longest, "/x/a.go") == "https://host/x/a.go"


def test_pages_link_to_a_repository_that_is_named_later(tmp_path):
    frames = (Frame("f", "app", file="/build/net/a b.c", function_line=5, line=7), Frame("g", file="/usr/b.c", line=1))
    origins = tuple(Origin(labels=(("git.commit", commit),)) for commit in ("v1", "v2"))
    samples = (Sample((0, 1), (2,), 0), Sample((0, 1), (3,), 1), Sample((1,), (1,), 0))
    out = tmp_path / "out"
    out.mkdir()
    write_tables(to_tables([ForeignProfile((Measure("cpu"),), frames, samples, origins=origins)]), out)
    ImportRecord().write(out)

    def linked(link):
        return CliRunner().invoke(app, ["profile", "import", "--append", "--out", str(out), "--source-link", link])

    done = linked("/build=https://github.com/acme/search")
    told = ["1 of 2 source files link to a repository; not: /usr/b.c", "label.git.commit is the revision"]
    assert (done.exit_code, done.stdout.splitlines()[:2]) == (0, told), done.output
    bad = linked("/build=https://github.com/{x}/{path}")
    assert (bad.exit_code, "--source-link: has {x}" in bad.stderr) == (2, True), bad.output
    base, site = "https://github.com/acme/search/blob", application(out)
    pages = {
        "/query?event=cpu": f"{base}/v2/net/a%20b.c#L5",
        "/query?event=cpu&where=label.git.commit=v1": f"{base}/v1/net/a%20b.c#L5",
        "/query?event=cpu&by=file,line": f"{base}/v2/net/a%20b.c#L7",
        "/source?event=cpu": f"{base}/v2/net/a%20b.c",
        "/source?event=cpu&file=/build/net/a b.c": f"{base}/v2/net/a%20b.c#L7",
    }
    for url, address in pages.items():
        page = Reader(ask(site, url.replace(" ", "%20")).text)
        links = [own for tag, own in page.tags if tag == "a" and own["href"].startswith("https:")]
        assert address in [own["href"] for own in links], url
        assert {own["rel"] for own in links} == {"noopener noreferrer"}
        assert all(own["href"].startswith(base) for own in links)
    assert "at v2, which has most of the samples of 2 revisions" in ask(site, "/source?file=/build/net/a%20b.c").text
    assert "does not hold the text of this file" in ask(site, "/source?file=/usr/b.c").text
    assert ask(site, "/flame.json").json()["functions"]["repository"].count(f"{base}/v2/net/a%20b.c#L5") == 1
    record = out / "import.json"
    record.write_text(record.read_text().replace("https://github.com", "javascript:alert(1)"))
    text = ask(application(out), "/source").text
    assert "repository" not in text
    assert "javascript" not in text
    assert linked("/build=").exit_code == 0
    assert ImportRecord.read(out).links == {}
