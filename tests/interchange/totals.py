"""Totals of pprof and folded files as flamegraph-textual reads them, in an environment of its own."""

import json
import sys
from pathlib import Path

from flamegraph_textual.parsers import parse


def totals(file):
    """Sum of every measure, in the order of the file."""
    kind = "stackcollapse" if file.endswith(".folded") else "pprof"
    return [str(value) for value in parse(Path(file).read_bytes(), file, kind).root_stack.values]


print(json.dumps({file: totals(file) for file in sys.argv[1:]}))
