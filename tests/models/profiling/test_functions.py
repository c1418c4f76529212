"""Functions: costs against the stack written out, and lines that lie below each other."""

import math
from itertools import pairwise

import numpy as np
import pytest

from models.platforms import PLATFORMS
from models.profiling.functions import core_cpi, hit_rates, image_functions, levels, together
from models.profiling.world import Programs

FILES = ["a.cc"] * 30 + ["b.cc"] * 20
CODE = image_functions(Programs(), 3, "libtest", ([f"f{i}" for i in range(50)], FILES))


@pytest.mark.parametrize("name", ["haswell_2698v3", "skylake_6148", "altra_q80_30"])
def test_core_cpi_is_the_stack_of_its_parts(name):
    sheet = PLATFORMS[name]
    first, second, last = sheet.caches
    for i in range(0, 50, 7):
        l2 = CODE.l2_hits[i] * math.sqrt(32768 / first.size_bytes) * 0.3 * second.latency_cycles
        llc = CODE.llc_hits[i] * math.sqrt(262144 / second.size_bytes) * 0.6 * last.latency_cycles
        branches = CODE.mispredictions[i] * sheet.branch_miss_cycles
        assert core_cpi(CODE, sheet)[i] == pytest.approx(
            CODE.core_base[i] * sheet.core_cpi_factor + l2 + llc + branches
        )


def test_with_two_levels_nothing_hits_between_them():
    sheet = PLATFORMS["pres"]
    assert levels(sheet).llc_cycles == 0.0
    assert (hit_rates(CODE, sheet)[1] == 0.0).all()
    assert np.isfinite(core_cpi(CODE, sheet)).all()


def test_lines_of_a_file_overlap_in_no_function():
    last = CODE.line[CODE.line_start[1:] - 1]
    inside = np.array([file == other for file, other in pairwise(FILES)])
    assert (CODE.function_line[1:] > last[:-1])[inside].all()
    assert (CODE.line[CODE.line_start[:-1]] > CODE.function_line).all()
    steps = np.diff(CODE.line)
    within = np.setdiff1d(np.arange(steps.size), CODE.line_start[1:-1] - 1)
    assert (steps[within] > 0).all()


def test_line_weights_sum_to_one_in_each_function():
    assert np.add.reduceat(CODE.line_weight, CODE.line_start[:-1]) == pytest.approx(np.ones(50))


def test_rates_are_rates():
    for rate in (CODE.core_base, CODE.l2_hits, CODE.llc_hits, CODE.mispredictions, CODE.miss_intensity):
        assert (rate > 0).all()
    assert (CODE.overlap >= 1).all()
    assert ((CODE.floating_point >= 0) & (CODE.floating_point <= 1)).all()


def test_images_stand_one_after_the_other():
    other = image_functions(Programs(), 3, "libother", (["g"], ["g.cc"]))
    both = together([CODE, other])
    assert both.image.tolist() == [0] * 50 + [1]
    assert both.name[-1] == "g"
    assert both.line[both.line_start[50] :].tolist() == other.line.tolist()
