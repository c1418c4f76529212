"""What the documents show can be run, prints what is shown, and the generated documents are up to date."""

import ast
import functools
import re
import shlex
import signal
import subprocess
import sys
from glob import glob
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
import typer

from docs import figures, inputs, reference
from docs.shown import DOCUMENTS, ROOT, SERVES, blocks, commands, examples, recipes, renewed, run, skeleton
from models.tables import TABLES
from scenarios.commands.app import app
from scenarios.files.catalogue import shipped
from scenarios.files.loader import load_each
from scenarios.papers.reproduce import listing
from tests.helpers.report_pages import DAY

EXAMPLES = ROOT / "docs" / "examples"
BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]
COMMANDS = [command for block in BLOCKS for command in commands(block)]
HEAVY = recipes()
"""Run by .ci/run, for what `make demo` makes; everything else is run here."""
_OTHERWISE = {
    "wsc run one_day": [word for each in DAY for word in ("--set", each)],
    "wsc run denser.yaml": ["--set", "fleet.machines=200"],
    "wsc validate sharing.yaml --draws 50 --machines 25": ["--draws", "10"],
    "wsc validate small --estimators wsmeter,adjusted,trimmed_means.py:TrimmedMeans --draws 40": ["--draws", "10"],
    "wsc scorecard --estimators adjusted,cuped,trimmed_means.py:TrimmedMeans --designs day --sizes 50 --draws 50 "
    "--machines 200 --fleets 2 --corners base,rough": ["--draws", "20", "--sizes", "25", "--machines", "100"],
    "wsc scorecard --fleets 1 --corners base --machines 100 --sizes 12,25 --draws 50 --designs day": [
        *("--draws", "10", "--sizes", "12"),
    ],
    "wsc live --minutes 0.1": ["--minutes", "0.05"],
    "wsc live --replay --minutes 0.05": ["--minutes", "0.02"],
    "wsc run cross_stockonline --set horizon_s=7200": ["--set", "horizon_s=1200"],
    "wsc validate cross_stockonline --draws 2 --set horizon_s=7200": ["--draws", "1", "--set", "horizon_s=1200"],
    "wsc run queue_on_machine --seed 1 --set machine.governor.policy=ondemand --json": ["--set", "horizon_s=300"],
    'wsc design fleet_before.csv --jobs fleet_jobs.csv --metric-kind mean --column "value=100 * (value - 1)" '
    "--detect 4 --days 1": ["--draws", "100"],
    "wsc design fleet_before.csv --jobs fleet_jobs.csv --detect 3% --days 1 --assign plan.csv": ["--draws", "100"],
    "wsc profile ask runs/profiled_small-* colocate --judge --pairs 4": ["--pairs", "2"],
    "python ../../benchmarks/real_splits.py machines_before.csv.gz --splits 100 --machines 10,30": ["--splits", "20"],
}
SHORTER = {text: [shlex.quote(word) for word in words] for text, words in _OTHERWISE.items()}
"""What is run with fewer machines, draws or requests here, as no document shows what it prints."""
SERVING = {command.text: command for command in COMMANDS if command.text.startswith(SERVES)}
QUICK = [
    command
    for command in COMMANDS
    if command.text.startswith(("wsc ", "python ")) and command.text not in {*HEAVY, *SERVING}
]
PYTHON = [block for block in BLOCKS if block.language == "python"]


_COMMANDS = typer.main.get_command(app).commands
GROUPS = {name for name, command in _COMMANDS.items() if hasattr(command, "commands")}
PROGRAM = {name: command for name, command in _COMMANDS.items() if name not in GROUPS} | {
    f"{group} {name}": command for group in GROUPS for name, command in _COMMANDS[group].commands.items()
}
"""Every command of the program, those of groups by both words."""


def named(shown):
    return f"{shown.document.relative_to(ROOT)}:{shown.line}"


@pytest.fixture(scope="module")
def folder():
    """A folder with the examples and runs of `small` and `profiled_small`, in which the documents' Python has run."""
    with examples() as place:
        output("wsc run small")
        output("wsc run profiled_small")
        for block in PYTHON:
            exec(compile("\n".join(block.lines), named(block), "exec"), {})
        yield place
    output.cache_clear()


@functools.cache
def output(text):
    line = " ".join((text, *SHORTER.get(text, ())))
    if text.startswith("wsc "):
        return run(line)
    script, *words = shlex.split(line)[1:]
    done = subprocess.run([sys.executable, EXAMPLES / script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", QUICK, ids=named)
@pytest.mark.usefixtures("folder")
def test_every_quick_command_runs_and_prints_what_is_shown(command):
    made = output(command.text)
    if command.output:
        renewed(command.output, made)


@pytest.mark.parametrize("command", SERVING.values(), ids=named)
@pytest.mark.usefixtures("folder")
def test_every_server_shown_answers_until_it_is_told_to_end(command):
    words = [word for each in shlex.split(command.text)[1:] for word in sorted(glob(each)) or [each]]
    wsc = Path(sys.executable).with_name("wsc")
    with subprocess.Popen([wsc, *words, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            url = next(word for word in server.stdout.readline().split() if word.startswith("http://"))
            with urlopen(url, timeout=60) as page:
                assert b"<h1" in page.read()
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 0


@functools.cache
def library():
    return {one["name"] for one in shipped().entries}


@functools.cache
def is_slow(text):
    """Whether a command simulates a fleet of thousands of machines, or many machines for a fortnight."""
    _, verb, *words = shlex.split(text)
    if verb == "reproduce":
        quick = {row.id for row in listing().rows if not any(is_slow(f"wsc run {one}") for one in row.scenarios)}
        return "--list" not in words and words[0] not in quick
    if verb not in {"run", "validate"} or words[0] not in library():
        return False
    first = load_each(words[0])[0]
    return first.kind in {"fleet", "profile"} and first.fleet.machines * first.horizon_s / 86400 > 1000


def test_what_is_run_shorter_is_shown_without_what_it_prints():
    assert {command.text for command in QUICK if not command.output} >= {*SHORTER}
    assert not {command.text for command in COMMANDS if command.output} & {*SHORTER}


def test_every_command_is_run_either_here_or_by_ci():
    shown = {command.text for command in COMMANDS if command.text.startswith("wsc ")}
    assert {text for text in shown if is_slow(text)} == set(HEAVY)


@pytest.mark.parametrize("command", COMMANDS, ids=named)
def test_every_shown_command_exists_with_its_options(command):
    tool, what, *words = shlex.split(command.text)
    if tool == "make":
        assert re.search(rf"^{what}: ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif tool == "python":
        assert (EXAMPLES / what).is_file()
    else:
        assert tool == "wsc"
        name = f"{what} {words[0]}" if what in GROUPS else what
        options = {option for each in PROGRAM[name].params for option in each.opts}
        assert {word for word in words if word.startswith("--")} <= options


def test_every_benchmark_is_run_by_make_bench():
    run_by_make = re.findall(r"benchmarks/(\w+\.py)", (ROOT / "Makefile").read_text())
    assert sorted(run_by_make) == sorted(path.name for path in (ROOT / "benchmarks").glob("*.py"))


def test_every_command_of_the_program_is_shown():
    shown = [shlex.split(command.text)[1:3] for command in COMMANDS if command.text.startswith("wsc ")]
    assert {" ".join(words) if words[0] in GROUPS else words[0] for words in shown} == set(PROGRAM)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "yaml"], ids=named)
@pytest.mark.usefixtures("folder")
def test_every_scenario_shown_is_the_example_of_that_name(block):
    name = next(line.removeprefix("name: ") for line in block.lines if line.startswith("name: "))
    example = [line for line in (ROOT / f"docs/examples/{name}.yaml").read_text().splitlines() if line[:1] != "#"]
    assert list(block.lines) == example
    assert load_each(f"{name}.yaml")


@pytest.mark.parametrize("block", [block for block in PYTHON if block.document.name == "extend.md"], ids=named)
def test_every_part_shown_is_an_example(block):
    assert "\n".join((*block.lines, "")) in {file.read_text() for file in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize(("file", "text"), [("tables.md", reference.tables), ("parameters.md", reference.parameters)])
def test_generated_documents_are_up_to_date(file, text):
    assert (ROOT / "docs" / file).read_text() == text(), "run python docs/reference.py"


def test_every_column_of_every_table_is_documented():
    text = (ROOT / "docs/tables.md").read_text()
    assert all(f"`{name}`" in text for name in TABLES)
    assert all(f"| `{column.name}` | {column.type} |" in text for columns in TABLES.values() for column in columns)


def read_fields():
    """The names in the literals `Field("name", …)` of the code, module by module; few modules have any."""
    for path in sorted([*ROOT.glob("analysis/**/*.py"), *ROOT.glob("scenarios/**/*.py")]):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if re.search(r"\bField\b", text) else ():
            named = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Field" and node.args
            if named and isinstance(node.args[0], ast.Constant):
                yield path.stem, node.args[0].value


def test_every_column_that_a_command_reads_is_documented_with_its_meaning():
    documented = {(each.name, field.name) for each in inputs.TABLES for field in each.fields}
    assert set(inputs.meanings()) == documented
    assert all(meaning for meaning in inputs.meanings().values())
    text = inputs.tables()
    assert [name for name in read_fields() if f"| `{name[1]}` |" not in text] == []


@pytest.mark.parametrize("kind", ["small", "profiled_small", "queue_small", "cross_rubis"])
@pytest.mark.usefixtures("folder")
def test_every_table_that_a_run_writes_is_documented_as_it_is(kind):
    if kind in {"small", "profiled_small"}:
        written = Path("runs")
    else:
        written = Path("written")
        output(f"wsc run {kind} --out {written}" + (" --set horizon_s=3600" if kind == "cross_rubis" else ""))
    text = (ROOT / "docs/tables.md").read_text()
    files = list(written.glob(f"{kind}-*/*.parquet"))
    assert files
    for file in files:
        section = re.search(rf"^## .*`{file.stem}`.*$\n+((?:\|.*\n)+)", text, re.MULTILINE)
        documented = re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE)
        assert pq.read_schema(file).names == documented, file.stem


def test_every_source_of_a_default_is_of_a_key_that_there_is():
    keys = {f"{path}.{key}" for paths, _, part in reference.parts() for path in paths for key in part}
    keys |= {key.removeprefix(f"{reference.FLEET}.") for key in keys}
    lines = (ROOT / "docs/defaults.csv").read_text().splitlines()[1:]
    assert {line.partition(",")[0] for line in lines} <= keys


def test_every_link_leads_to_a_file():
    for document in DOCUMENTS:
        for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document}: {link}"


def test_pictures_are_small():
    assert all(file.stat().st_size < 100_000 for file in (ROOT / "docs/images").iterdir())


def test_every_picture_is_drawn_by_make_docs_and_shown_in_a_document():
    stored = {file.stem for file in (ROOT / "docs/images").iterdir()}
    shown = {name for document in DOCUMENTS for name in re.findall(r"images/(\w+)\.png", document.read_text())}
    assert stored == shown == set(figures.PICTURES)


SHOWN = ("size  true", " 25   +1.2%", "…", "100   -0.3%")


def test_renewed_output_has_the_new_numbers_and_keeps_what_is_left_out():
    printed = "size   true\n  25   +11.25%\n  50   +4%\n  100  -0.3%\nnote\n"
    assert renewed((*SHOWN, "…"), printed) == ["size   true", "  25   +11.25%", "…", "  100  -0.3%", "…"]


def test_where_no_line_begins_alike_the_first_of_that_shape_is_taken():
    printed = "size   true\n  75   +11.25%\n  50   +4%\n  25   +1.2%\n"
    assert renewed((*SHOWN, "…"), printed) == ["size   true", "  75   +11.25%", "…", "  50   +4%", "…"]


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        ("size  true\n  25   yes\n", "not printed now, or not after the line before:  25   .1.2%"),
        ("head\nsize  true\n", "not printed now, or not after the line before: size  true"),
        ("size  true\n  25   +1%\n 50   +1%\nmore\n", "not shown: more"),
    ],
)
def test_output_that_changed_its_shape_is_told(printed, problem):
    with pytest.raises(ValueError, match=problem):
        renewed(SHOWN, printed)


def test_a_skeleton_forgets_numbers_digests_and_widths():
    assert skeleton("  25  +1.25% to 3,000 ───── runs/small-88588b9eea5d ") == "0 0% to 0 ─ runs/small-DIGEST"
