"""A compiled function runs whatever an older version of the code left in its cache."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from models.code.compiled import njit

SOURCE = """
from typing import NamedTuple

from models.code.compiled import njit


class {name}(NamedTuple):
    x: float


@njit(cache=False)
def _twice(x):
    return 2.0 * x


@njit()
def doubled(point):
    return _twice(point.x)


print(doubled({name}(4.0)), sum(doubled.stats.cache_hits.values()))
"""


def run(folder, name):
    """What a process prints that calls a function whose argument's class has that name, and its cache hits."""
    file = folder / "shapes.py"
    file.write_text(SOURCE.format(name=name))
    os.utime(file, (1e9, 1e9 + len(name)))
    code = "import shapes"
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(folder)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_an_argument_whose_class_was_renamed_leaves_no_cache_that_breaks_the_function(tmp_path):
    assert run(tmp_path, "Point") == "8.0 0"
    assert run(tmp_path, "Place") == "8.0 0"
    assert run(tmp_path, "Place") == "8.0 1"


PART = """
from models.code.compiled import njit

{factor}

@njit(cache=False{options})
def widened(x, factor=FACTOR):
    return {body}
"""
WHOLE = """
import part
from models.code.compiled import njit
from part import widened


@njit()
def once(x):
    return widened(x) + part.SHIFT


@njit()
def twice(x):
    return 2.0 * once(x)


print(twice(4.0), sum(twice.stats.cache_hits.values()))
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_machine_code_is_made_anew_where_another_file_that_it_reads_says_something_else(tmp_path):
    """Numba looks at a function's own file: a part, a number or a default changed in another, and old code went on."""
    (tmp_path / "whole.py").write_text(WHOLE)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def printed(factor, body, options="", seed="0"):
        (tmp_path / "part.py").write_text(PART.format(factor=factor, body=body, options=options))
        words, places = [sys.executable, "-c", "import whole"], {**environment, "PYTHONHASHSEED": seed}
        return subprocess.run(words, env=places, capture_output=True, text=True, check=True).stdout.strip()

    three, five = "FACTOR, SHIFT = 3.0, 0.5", "FACTOR, SHIFT = 5.0, 0.5"
    assert printed(three, "x * FACTOR") == "25.0 0"
    assert printed(three, "x * FACTOR", seed="1") == "25.0 1"
    assert printed(five, "x * FACTOR") == "41.0 0"
    assert printed(five.replace("0.5", "1.5"), "x * FACTOR") == "43.0 0"
    assert printed(five, "x * factor") == "41.0 0"
    assert printed(three, "x * factor") == "25.0 0"
    assert printed(three, "x * factor  # as before", seed="2") == "25.0 1"
    assert printed(three, "x / (factor - 3.0)", ", error_model='numpy'") == "inf 0"
    assert printed(three, "x / (factor - 3.0) if x < 0.0 else x", ", error_model='numpy'") == "9.0 0"
    assert printed(three, "x / (factor - 3.0) if x < 0.0 else x") == "9.0 0"


FIELDS = """
from typing import NamedTuple


class Pair(NamedTuple):
    {first}: float
    {second}: float


class Pairs(NamedTuple):
    pair: Pair
    both: tuple[Pair, Pair]
"""
READS = """
from fields import Pair, Pairs
from models.code.compiled import njit


@njit()
def read(pairs):
    return pairs.pair.a + 10.0 * pairs.both[1].a


pair = Pair(a=1.0, b=2.0)
print(read(Pairs(pair, (pair, pair))), sum(read.stats.cache_hits.values()))
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_machine_code_is_made_anew_where_fields_of_an_argument_change_places(tmp_path):
    """Numba's key has the class of a named tuple and the types of its fields, and took one field for another."""
    (tmp_path / "reads.py").write_text(READS)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    printed = []
    for first, second in ("ab", "ab", "ba"):
        (tmp_path / "fields.py").write_text(FIELDS.format(first=first, second=second))
        words = [sys.executable, "-c", "import reads"]
        printed.append(
            subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        )
    assert printed == ["11.0 0", "11.0 1", "11.0 0"]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize(
    "damage", [b"", b"cmodels.code.compiled\nGone\n.", b"no pickle"], ids=["cut off", "gone", "text"]
)
def test_an_index_that_cannot_be_unpickled_counts_as_empty(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @njit()
    def halved(x: float) -> float:
        return x / 2.0

    (index,) = [Path(halved._cache._cache_file._index_path)]
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(pickle.dumps(numba.__version__) + damage)
    assert halved(8.0) == 4.0
    assert index.stat().st_size > len(pickle.dumps(numba.__version__) + damage)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_what_is_not_kept_is_a_part_of_its_callers_and_compiled_for_itself_only_where_python_calls_it():
    @njit(cache=False)
    def root(x: float) -> float:
        if x < 0.0:
            raise ValueError("has no root")
        return x**0.5

    @njit(cache=False)
    def sum_of_roots(x: float) -> float:
        return root(x) + root(4.0 * x)

    assert sum_of_roots(9.0) == 9.0
    assert root.signatures == []
    with pytest.raises(ValueError, match="has no root"):
        sum_of_roots(-1.0)
    assert root(9.0) == 3.0
    assert len(root.signatures) == 1
