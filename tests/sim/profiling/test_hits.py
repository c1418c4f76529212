"""Where samples fall: lines by their weights, call paths by their probabilities, and neither by the other."""

import numpy as np
import pytest
from scipy import stats

from sim.profiling.draws import Draws
from sim.profiling.hits import Locator
from tests.helpers.profiled_fleets import images

SAMPLES = 20_000
OF = images()
LOCATOR = Locator(OF.programs, OF.addresses)
PROGRAM = 1


def fallen(entry):
    """Line, instruction and path of many samples of one entry of a program, one cell each."""
    functions = OF.programs.functions(PROGRAM)
    every = np.arange(SAMPLES)
    draws = Draws(every, np.full(SAMPLES, entry), every.astype(np.uint64) + np.uint64(7))
    return LOCATOR.locate(draws, every, np.array([0]), functions, PROGRAM)


def entries_with_choices():
    """Entries with several lines and several paths, each expected at least 50 times."""
    code, paths, start = OF.addresses.code, OF.programs.paths, int(OF.programs.start[PROGRAM])
    for entry, function in enumerate(OF.programs.functions(PROGRAM)):
        lines = code.line_weight[slice(*code.line_start[function : function + 2])]
        ways = paths.probability[slice(*paths.start[start + entry : start + entry + 2])]
        if min(lines.size, ways.size) > 2 and lines.min() / lines.sum() > 0.003 and ways.min() / ways.sum() > 0.003:
            yield entry, lines / lines.sum(), ways / ways.sum()


CASES = list(entries_with_choices())[:3]


def test_there_are_functions_with_lines_and_paths_to_choose_from():
    assert len(CASES) == 3


@pytest.mark.statistical
@pytest.mark.parametrize(("entry", "lines", "ways"), CASES)
def test_lines_fall_by_weight_and_paths_by_probability_each_by_itself(entry, lines, ways):
    """Three chi-squared tests at 1e-6 for each of three functions: false alarms below 1e-5."""
    hits = fallen(entry)
    assert (hits.count == 1).all()
    line, path = hits.line - hits.line.min(), hits.path - hits.path.min()
    table = np.zeros((lines.size, ways.size))
    np.add.at(table, (line, path), 1.0)
    assert stats.chisquare(table.sum(axis=1), SAMPLES * lines).pvalue > 1e-6
    assert stats.chisquare(table.sum(axis=0), SAMPLES * ways).pvalue > 1e-6
    assert stats.chi2_contingency(table).pvalue > 1e-6
    code, function = OF.addresses.code, OF.programs.functions(PROGRAM)[entry]
    assert hits.line.min() == code.line_start[function]
    assert hits.path.min() == OF.programs.paths.start[OF.programs.start[PROGRAM] + entry]


@pytest.mark.statistical
def test_instructions_of_a_line_are_alike_whatever_its_path():
    """A chi-squared test at 1e-6 of instructions against paths."""
    entry = CASES[0][0]
    hits = fallen(entry)
    line = np.argmax(np.bincount(hits.line))
    here = hits.line == line
    many = int(OF.addresses.instructions[line])
    counts = np.bincount(hits.instruction[here], minlength=many)
    assert counts.size == many
    assert stats.chisquare(counts).pvalue > 1e-6
