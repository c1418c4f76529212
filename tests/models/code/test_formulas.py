"""Functions that other people write are compiled as they are, and what is wrong with them is told with their line."""

import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from models.code import formulas, parts
from models.code.compiled import njit, with_functions
from models.code.formulas import Formula
from models.code.parts import PartError, part


def formula(folder: Path, text: str, *parameters: str) -> Formula:
    file = folder / "mine.py"
    file.write_text(text)
    return Formula(part(f"{file}:mine"), parameters or ("x", "y"))


@njit(cache=False)
def summed(function, n):
    total = 0.0
    for i in range(n):
        total += function(float(i), 2.0)
    return total


def test_a_formula_is_the_function_that_was_written(tmp_path):
    mine = formula(tmp_path, "import math\nK = 3.0\n\ndef mine(x, y):\n    return K * math.sqrt(x) if x > y else -1\n")
    assert mine.compiled()(4.0, 1.0) == 6.0
    assert mine.compiled()(0.0, 1.0) == -1.0


def test_a_kernel_takes_every_formula_and_is_compiled_once(tmp_path):
    halves = [formula(tmp_path, f"def mine(x, y):\n    return x / y + {k}\n").compiled() for k in (0, 1)]
    kernels = [with_functions(summed, half, 4) for half in halves]
    assert kernels[0] is kernels[1]
    assert [kernels[0](half, 4) for half in halves] == [3.0, 7.0]


def test_what_was_compiled_is_kept_for_the_next_process(tmp_path):
    mine = formula(tmp_path, "def mine(x, y):\n    return x\n").part.reference
    script = (
        "from models.code.formulas import Formula; from models.code.parts import part; import sys;"
        f"stats = Formula(part({mine!r}), ('x', 'y')).compiled().stats;"
        "print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))"
    )
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in "12"]
    assert [done.stdout.split() for done in runs] == [["0", "1"], ["1", "0"]]


@pytest.mark.parametrize(
    "text",
    [
        "class Costs(NamedTuple):\n    print: float\n    random: float\n\n\nCOSTS = Costs(2.0, 3.0)\n\n\n"
        "def mine(x, y):\n    return x + COSTS.print * y + COSTS.random\n",
        "random = 3.0\n\n\ndef mine(x, y):\n    return x + 2.0 * y + random\n",
        "def mine(x, y):\n    print = 2.0\n    return x + print * y + 3.0\n",
    ],
)
def test_a_formula_may_have_something_that_is_called_print(tmp_path, text):
    """An attribute of that name was taken for the function that prints."""
    assert formula(tmp_path, f"from typing import NamedTuple\n\n\n{text}").compiled()(1.0, 4.0) == 12.0


def test_a_formula_may_use_a_module_whose_name_only_begins_with_random(tmp_path, monkeypatch):
    """A method of an object of such a module was taken for a draw."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "random_forest", raising=False)
    text = "class Forest:\n    def deep(self, x):\n        return x\n\n\nforest = Forest()\ndeep = forest.deep\n"
    (tmp_path / "random_forest.py").write_text(text)
    used = "random_forest.deep(x) + forest.deep(y) + deep(1.0)"
    text = f"import random_forest\nfrom random_forest import deep, forest\n\ndef mine(x, y):\n    return {used}\n"
    assert formula(tmp_path, text).function(2.0, 3.0) == 6.0


def test_a_folder_that_is_copied_with_what_was_compiled_is_compiled_anew(tmp_path):
    (tmp_path / "here").mkdir()
    formula(tmp_path / "here", "def mine(x, y):\n    return x + y\n").compiled()
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    script = (
        "from models.code.formulas import Formula; from models.code.parts import part;"
        f"print(Formula(part({str(tmp_path / 'there' / 'mine.py')!r} + ':mine'), ('x', 'y')).compiled()(1, 2))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "3.0\n"


@pytest.mark.parametrize("read", ["from helper_k import K", "import helper_k", "from helper_k import twice"])
def test_what_a_formula_reads_from_other_modules_is_as_it_is_now(tmp_path, read, monkeypatch):
    """Also where the function that it calls reads it."""
    monkeypatch.syspath_prepend(tmp_path)
    used = {"import helper_k": "helper_k.K * x", "from helper_k import K": "K * x"}.get(read, "twice(x)")
    mine = formula(tmp_path, f"{read}\n\ndef mine(x, y):\n    return {used}\n")
    answers = []
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for k in (1.0, -1.0):
        monkeypatch.delitem(sys.modules, "helper_k", raising=False)
        jitted = "from numba import njit\n@njit\ndef twice(x):\n    return K * x\n"
        (tmp_path / "helper_k.py").write_text(f"K = {k!r}\n{jitted}")
        answers.append(_anew(mine)(3.0, 0.0))
    assert answers == [3.0, -3.0]


def _anew(mine):
    """Return what the next process would have: the file runs again, and what was compiled is on disk."""
    for name in [name for name in sys.modules if name.startswith("wsc_part_mine_")]:
        del sys.modules[name]
    parts._object.cache_clear()
    formulas._compiled.cache_clear()
    return mine.compiled()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mine = 3", r"mine\.py: mine: should be a function of \(x, y\), got int"),
        ("\ndef mine(x):\n    return x", r"mine\.py:2: mine: should be a function of \(x, y\), got \(x\)"),
        ("\nclass mine:\n    pass", r"mine\.py:2: mine: should be a function of \(x, y\), got a class$"),
        (
            "def mine(x, y):\n    raise ValueError(3)",
            r"mine\.py:2: mine: should return a number, but does nothing else",
        ),
        ("def mine(y, x):\n    return x", r"got \(y, x\)"),
        ("import random\ndef mine(x, y):\n    return random.random()", r"mine\.py:2: mine: should draw no random num"),
        ("def mine(x, y):\n    print(x)\n    return x", r"mine\.py:1: mine: should print nothing: compiled code would"),
        ("import numpy as np\ndef mine(x, y):\n    return np.random.rand()", r"mine: should draw no random numbers"),
        ("from random import gauss\ndef mine(x, y):\n    return gauss(x, y)", r"mine: should draw no random numbers"),
        *(
            (f"{text}\n", r"mine\.py:\d+: mine: should draw no random numbers")
            for text in (
                "import numpy as np\nrng = np.random.default_rng(0)\ndef mine(x, y):\n    return rng.random()",
                "from numpy.random import default_rng\ndef mine(x, y):\n    return default_rng(0).random()",
                "import numpy as np\ndraw = np.random.default_rng(0).normal\ndef mine(x, y):\n    return draw(x, y)",
                "from random import Random\nrng = Random(0)\ndef mine(x, y):\n    return rng.gauss(x, y)",
                "from random import Random\ndef around(rng):\n    return lambda x, y: rng.random()\n"
                "mine = around(Random(0))",
            )
        ),
        (
            "def mine(x, y):\n    pass",
            r"mine\.py:2: mine: cannot be compiled: it should return a number wherever it ends$",
        ),
        ("def mine(x, y):\n    return z", r"mine\.py:\d: mine: cannot be compiled: NameError: name 'z' is not defined"),
        (
            "def mine(x, y):\n    import os\n    return x",
            r"mine\.py:1: mine: cannot be compiled: it should import nothing",
        ),
    ],
)
def test_what_is_no_such_function_is_told_with_its_line(tmp_path, text, problem):
    with pytest.raises(PartError, match=problem):
        formula(tmp_path, text).compiled()


def test_a_wrong_answer_is_told_with_what_was_asked(tmp_path):
    mine = formula(tmp_path, "\n\ndef mine(x, y):\n    return x\n")
    told = str(mine.fault(np.array([math.pi, 2.0, math.nan]), "should return a number"))
    assert told == f"{tmp_path}/mine.py:3: mine(x=3.14159, y=2): should return a number, got nan"


def test_marks_are_attributes_of_the_function(tmp_path):
    mine = formula(tmp_path, "def mine(x, y):\n    return x\n\nmine.preemptive = True\n")
    assert mine.has("preemptive")
    assert not mine.has("patient")


def test_a_mark_that_is_neither_true_nor_false_is_told(tmp_path):
    mine = formula(tmp_path, "def mine(x, y):\n    return x\n\nmine.preemptive = 'no'\n")
    with pytest.raises(PartError, match=r"mine\.py:1: mine\.preemptive should be True or False, got 'no'$"):
        mine.has("preemptive")
