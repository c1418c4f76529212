"""What builds change: the new compiler all that is linked, releases own code, the new kernel its own."""

import numpy as np
import pytest

from models.profiling.world import Compiler, Releases
from sim.profiling.builds import build_builds
from sim.profiling.changes import changed_functions
from tests.helpers.programs_world import WORLD, asked, fleet

SOFTWARE = fleet()[2]
PROGRAMS, BUILDS = SOFTWARE.programs, SOFTWARE.builds


def built(world):
    return build_builds(world, PROGRAMS)


def test_a_new_compiler_speeds_up_own_and_linked_code_but_not_the_kernel():
    world = asked(
        releases=Releases(share=1.0, changed_functions=0.0), compiler=Compiler(start_s=0.0, until_s=1.0, log_sd=0.0)
    )
    kinds = np.array(PROGRAMS.kinds)[PROGRAMS.code.image[PROGRAMS.function]]
    assert (built(world).factor == np.where(np.isin(kinds, ["program", "library"]), 0.97, 1.0)).all()


def test_releases_change_some_of_a_programs_own_functions():
    world = asked(releases=Releases(share=1.0, changed_functions=0.3), compiler=None)
    changed = built(world).factor != 1.0
    kinds = np.array(PROGRAMS.kinds)[PROGRAMS.code.image[PROGRAMS.function]]
    assert not changed[kinds != "program"].any()
    assert changed[kinds == "program"].mean() == pytest.approx(0.3, abs=0.03)


def test_the_kernel_changes_its_own_functions_alone():
    assert ((BUILDS.kernel_factor != 1.0) == (PROGRAMS.code.image == 0)).all()
    assert (built(asked(kernel=None)).kernel_factor == 1.0).all()
    assert len(fleet(asked(kernel=None))[2].places.kernels) == 1


@pytest.mark.statistical
def test_the_share_and_spread_of_changes_are_those_asked_for():
    """Some 4,000 functions: share and spread beyond five standard errors once in 800,000 worlds."""
    changed = changed_functions(WORLD, PROGRAMS)
    n = changed.size
    assert abs(changed.mean() - 0.15) < 5 * np.sqrt(0.15 * 0.85 / n)
    world = asked(releases=Releases(share=1.0, changed_functions=1.0, change_log_sd=0.2), compiler=None)
    own = np.array(PROGRAMS.kinds)[PROGRAMS.code.image[PROGRAMS.function]] == "program"
    log = np.log(built(world).factor[own])
    assert abs(log.std() - 0.2) < 5 * 0.2 / np.sqrt(2 * log.size)
    assert abs(log.mean()) < 5 * 0.2 / np.sqrt(log.size)
