"""What the documents show: their commands, and the output under them brought up to date.

    python docs/shown.py [docs/rates.md …]

Each command of README.md and docs/ is run, in order, in a temporary folder that holds docs/examples; the few that take
minutes, those of `make demo`, in the checkout. A shown line takes the numbers of the line that it resembles; a line `…`
stands for lines left out.
"""

import argparse
import contextlib
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from itertools import takewhile
from pathlib import Path

from typer.testing import CliRunner

from scenarios.commands.app import app

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
WIDTH = "100"
"""Columns of the terminal that shown output is made for."""
SHELL = ("sh", "console")
SERVES = "wsc serve "
"""How commands begin that only end when they are told to."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a document: the line after its fence, its language and its lines."""

    document: Path
    line: int
    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a document, the line it stands in, and the output that is shown under it."""

    document: Path
    line: int
    text: str
    output: tuple[str, ...]


def blocks(document: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a document in order."""
    lines = document.read_text(encoding="utf-8").splitlines()
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    for start, end in zip(fences[::2], fences[1::2], strict=True):
        yield Block(document, start + 2, lines[start].removeprefix("```"), tuple(lines[start + 1 : end]))


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a block: each line of `sh`, and the lines of `console` that begin with a dollar."""
    for at, line in enumerate(block.lines):
        if block.language == "console" and line.startswith("$ "):
            output = tuple(takewhile(lambda below: not below.startswith("$ "), block.lines[at + 1 :]))
            yield Command(block.document, block.line + at, line.removeprefix("$ "), output)
        elif block.language == "sh" and line.strip() and not line.startswith("#"):
            yield Command(block.document, block.line + at, line, ())


def run(text: str) -> str:
    """Run one `wsc …` line in the current folder, as a shell would: `*`, `< FILE`, `> FILE`; return what it prints.

    What is said of a file whose name begins with `faulty` is printed to stderr, with exit code 2.

    Raises
    ------
    RuntimeError
        If it ends otherwise than it should; the message is what it said.
    """
    line, _, file = text.partition(" > ")
    line, _, given = line.partition(" < ")
    os.environ["COLUMNS"] = WIDTH
    words = [
        word for each in shlex.split(line)[1:] for word in (f"'{each}'" not in line and sorted(glob(each))) or [each]
    ]
    done = CliRunner().invoke(app, words, input=Path(given).read_bytes() if given else None)
    faulty = " faulty" in text
    if done.exit_code != (2 if faulty else 0):
        raise RuntimeError(f"{text}: exit {done.exit_code}: {done.exception!r} {done.stderr}")
    if file:
        Path(file).write_text(done.stdout, encoding="utf-8")
    return done.stderr if faulty else "" if file else done.stdout


def recipes() -> tuple[str, ...]:
    """Return the `wsc` commands of the Makefile's targets that .ci/run makes."""
    ci = (ROOT / ".ci/run").read_text()
    named = re.findall(r"^ *(?:for target in|told) ([\w ]+)(?:; do| \|\|)", ci, re.MULTILINE)
    targets = " ".join(named).split()
    made = re.findall(r"^(\w+): .*\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    steps = "".join(recipe for name, recipe in made if name in targets)
    return tuple(re.findall(r"^\t\$\(BIN\)/(wsc .*)$", steps, re.MULTILINE))


def skeleton(line: str) -> str:
    """Return what stays of a line when numbers, digests and widths change.

    Examples
    --------
    >>> skeleton("100   +1.25% to 3,000   runs/small-88588b9eea5d")
    '0 0% to 0 runs/small-DIGEST'
    """
    line = re.sub(r"-[0-9a-f]{12}\b", "-DIGEST", line)
    line = re.sub(r"[-+−]?\d[\d,.]*", "0", line)
    return " ".join(re.sub(r"([─━])\1+", r"\1", line).split())


def renewed(shown: Sequence[str], printed: str) -> list[str]:
    """Return shown output with the lines that were printed now.

    Raises
    ------
    ValueError
        If a shown line resembles no printed one, or one that follows the line before only after some that are not
        shown and no `…` says so.
    """
    rest = [line.rstrip() for line in printed.splitlines()]
    made, skips = list[str](), False
    for line in shown:
        if line.strip() == "…":
            made.append(line)
            skips = True
            continue
        at = _likeliest(line, rest if skips else rest[:1])
        if at is None:
            raise ValueError(f"not printed now, or not after the line before: {line}")
        made.append(rest[at])
        rest, skips = rest[at + 1 :], False
    if shown and rest and not skips and any(rest):
        raise ValueError(f"not shown: {rest[0]}")
    return made


def _likeliest(line: str, rest: Sequence[str]) -> int | None:
    """Return which printed line a shown one resembles: the first that begins with the same words, else the first."""
    alike = [at for at, now in enumerate(rest) if skeleton(now) == skeleton(line)]
    begins = [at for at in alike if rest[at].split()[:2] == line.split()[:2]]
    return next(iter(begins + alike), None)


@contextlib.contextmanager
def examples() -> Iterator[Path]:
    """Work in a temporary folder that holds the examples."""
    with tempfile.TemporaryDirectory() as folder:
        place = shutil.copytree(ROOT / "docs/examples", Path(folder) / "examples")
        with contextlib.chdir(place):
            yield place


def renew(document: Path) -> Iterator[str]:
    """Bring the shown output of one document up to date; to be called among the examples.

    Yields
    ------
    str
        What is to be mended by hand.
    """
    lines = document.read_text(encoding="utf-8").splitlines()
    for block in blocks(document):
        if block.language == "python":
            exec(compile("\n".join(block.lines), f"{document}:{block.line}", "exec"), {})
        for command in commands(block):
            if not command.text.startswith("wsc ") or command.text.startswith(SERVES):
                continue
            with contextlib.chdir(ROOT if command.text in recipes() else "."):
                printed = run(command.text)
            try:
                made = renewed(command.output, printed)
            except ValueError as error:
                yield f"{document}:{command.line}: {error}"
                continue
            lines[command.line : command.line + len(made)] = made
    document.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Renew documents, all of them by default; a line that resembles nothing printed is to be mended by hand."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("documents", nargs="*", type=Path, default=DOCUMENTS)
    documents = [document.resolve() for document in parser.parse_args().documents]
    with examples():
        faults = [fault for document in documents for fault in renew(document)]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
