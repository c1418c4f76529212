"""Sources of imported profiles: found by the end of their path, kept with a signature, and never from elsewhere."""

from typer.testing import CliRunner

from analysis.profiling.formats.foreign import ForeignProfile, Frame, Measure, Sample
from analysis.profiling.formats.sources import MOST_BYTES, with_sources
from analysis.profiling.formats.tables import to_tables
from scenarios.commands.app import app
from scenarios.web import annotation
from scenarios.web.site import ProfileSite


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
