"""The notebooks of this folder: run them, and compare what they print with what is stored in them.

    python docs/notebooks/run.py            # differences are printed, and the exit code is 1
    python docs/notebooks/run.py --write    # stores what they print now

Each notebook runs in a temporary folder beside a copy of docs/examples. Texts and tables must be as stored, to the
letter; of a picture it is only compared whether there is one.
"""

import argparse
import contextlib
import copy
import difflib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
NOTEBOOKS = tuple(sorted(HERE.glob("*.ipynb")))
LONGEST_CELL_S = 600
"""Seconds after which a cell is given up: the first run of a checkout compiles."""


def executed(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Return a notebook with the outputs of its cells, which run in a kernel of their own in `folder`.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails; the message has the cell and the traceback.
    """
    ran = copy.deepcopy(notebook)
    resources = {"metadata": {"path": str(folder)}}
    quiet = ["--IPKernelApp.log_level=40"]
    client = NotebookClient(
        ran, timeout=LONGEST_CELL_S, record_timing=False, resources=resources, extra_arguments=quiet
    )
    client.execute()
    ran.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for cell in ran.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _empty(output)]
    return ran


def _empty(output: NotebookNode) -> bool:
    """Return whether an output shows nothing, as a progress bar that has been taken away."""
    return output.output_type == "display_data" and not any(output.data.values())


def lines(notebook: NotebookNode) -> Iterator[str]:
    """Yield the code of a notebook with what each cell prints; a picture is a line with its type."""
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type != "code":
            continue
        yield f"[{number}]"
        yield from cell.source.splitlines()
        for output in cell.outputs:
            if output.output_type == "stream":
                yield from f"({output.name}) {output.text}".splitlines()
            for form, content in sorted(output.get("data", {}).items()):
                yield f"({form})"
                yield from [] if form.startswith("image/") else content.splitlines()


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """Yield a temporary folder for a notebook, with the examples beside it as in the checkout."""
    with tempfile.TemporaryDirectory(prefix="notebooks-") as folder:
        shutil.copytree(HERE.parent / "examples", Path(folder) / "examples")
        place = Path(folder) / "notebooks"
        place.mkdir()
        yield place


def differences(file: Path, *, write: bool = False) -> list[str]:
    """Run one notebook and return how what it prints differs from what is stored, which is replaced if `write`."""
    stored = nbformat.read(file, as_version=4)
    with workplace() as folder:
        ran = executed(stored, folder)
    changed = list(difflib.unified_diff([*lines(stored)], [*lines(ran)], "stored", "printed now", n=2, lineterm=""))
    if write:
        nbformat.write(ran, file)
    return changed


def main() -> None:
    """Compare or renew the notebooks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, default=NOTEBOOKS, metavar="NOTEBOOK")
    parser.add_argument("--write", action="store_true", help="store what the notebooks print now")
    asked = parser.parse_args()
    failed = False
    for file in asked.notebooks:
        changed = differences(file, write=asked.write)
        failed |= bool(changed) and not asked.write
        print(f"{file.name}: {'as stored' if not changed else 'renewed' if asked.write else 'differs'}")
        if not asked.write:
            print(*changed, sep="\n", end="\n" if changed else "")
    if failed:
        sys.exit("renew them with python docs/notebooks/run.py --write, and read what changed")


if __name__ == "__main__":
    main()
