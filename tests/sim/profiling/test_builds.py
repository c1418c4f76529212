"""Builds and roll-outs: waves at midnights, compilers over time, and what a release costs."""

from dataclasses import replace

import numpy as np
import pytest

from models.profiling.images import GENERATED
from models.profiling.world import Compiler, Releases
from sim.fleet import slots
from sim.fleet.arms import NEVER
from sim.profiling.builds import NEW, OLD, build_builds, changed_functions, residence_release, software_factors
from tests.helpers.programs_world import DAYS, WORLD, asked, fleet

DAY, ARM, SOFTWARE, ROWS = fleet()
PROGRAMS, BUILDS = SOFTWARE.programs, SOFTWARE.builds
EPOCHS = 12


def built(world):
    return build_builds(world, PROGRAMS)


def test_every_image_has_a_build_and_each_released_program_two():
    old, new = BUILDS.of_image.T
    released = np.zeros(len(PROGRAMS.images), bool)
    released[PROGRAMS.image_of_program[BUILDS.release_day < NEVER]] = True
    released[0] = True
    assert ((old != new) == released).all()
    assert PROGRAMS.images[int(np.flatnonzero(old < 0)[0])] == GENERATED
    assert (old < 0).sum() == 1
    for generation in (OLD, NEW):
        numbers = BUILDS.of_image[:-1, generation]
        assert (BUILDS.image[numbers] == np.arange(len(PROGRAMS.images) - 1)).all()
    assert (BUILDS.built_s[old[:-1]] <= BUILDS.built_s[new[:-1]]).all()


def test_identifiers_are_unique_and_of_forty_digits():
    assert len(set(BUILDS.build_id)) == BUILDS.count
    assert {len(text) for text in BUILDS.build_id} == {40}
    assert BUILDS.revision[0] == "6.1.90"
    assert BUILDS.revision[1] == "6.6.30"


def test_the_share_released_and_the_days_are_those_asked_for():
    """60 programs, 60% released: within 20% but once in 600 worlds."""
    share = (BUILDS.release_day < NEVER).mean()
    assert 0.4 < share < 0.8
    assert set(np.unique(BUILDS.release_day)) <= {*range(1, DAYS), NEVER}
    assert (built(asked(releases=Releases(share=0.0))).release_day == NEVER).all()
    assert (built(asked(releases=Releases(share=1.0))).release_day < NEVER).all()


def test_releases_go_over_the_instances_in_waves_at_midnight():
    """Shares of some 2,000 instances: beyond 0.06 once in a million worlds."""
    waves = (0.2, 0.5, 0.9)
    world = asked(releases=Releases(share=1.0, wave_shares=waves))
    builds = built(world)
    start = residence_release(world, DAY, builds)
    assert (start[start < NEVER] % EPOCHS == 0).all()
    instance, first = np.unique(DAY.timeline.instance, return_index=True)
    after = start[first] - builds.release_day[DAY.timeline.job[first]] * EPOCHS
    for wave, share in enumerate(waves):
        assert abs((after <= wave * EPOCHS).mean() - share) < 0.06
    assert (after[after > 2 * EPOCHS] > NEVER / 2).all()
    of_instance = dict(zip(instance.tolist(), start[first].tolist(), strict=True))
    assert [of_instance[i] for i in DAY.timeline.instance.tolist()] == start.tolist()


def test_compilers_come_with_releases_as_their_roll_out_goes_on():
    always = Releases(share=1.0)
    early = built(asked(releases=always, compiler=Compiler(start_s=0.0, until_s=1.0)))
    late = built(asked(releases=always, compiler=Compiler(start_s=100 * 86400.0, until_s=101 * 86400.0)))
    assert early.recompiled.all()
    assert not late.recompiled.any()
    new = early.of_image[PROGRAMS.image_of_program].T
    assert {early.compiler[i] for i in new[OLD]} == {"clang-17"}
    assert {early.compiler[i] for i in new[NEW]} == {"clang-18"}
    assert set(built(asked(compiler=None)).compiler) == {"clang-17"}


def test_software_factors_are_the_physics_of_changed_functions():
    """A function twice as dear, written out by hand for one program."""
    program = int(np.argmin(np.where(BUILDS.release_day < NEVER, 0, 1)))
    factor = np.ones_like(BUILDS.factor)
    here = PROGRAMS.entries(program)
    factor[here.start + 7] = 2.0
    table = software_factors(PROGRAMS, replace(BUILDS, factor=factor), DAY.jobs)
    old = [float(w) for w in PROGRAMS.weight[0, here]]
    new = [2 * w if i == 7 else w for i, w in enumerate(old)]
    cpi = [float(PROGRAMS.core_cpi[0, f]) for f in PROGRAMS.functions(program)]
    dense = [float(PROGRAMS.code.miss_intensity[f]) for f in PROGRAMS.functions(program)]

    def mean(weights, values):
        return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)

    assert table[program, slots.INSTR] == pytest.approx(sum(new) / sum(old))
    assert table[program, slots.CORE] == pytest.approx(mean(new, cpi) / mean(old, cpi))
    for part in (slots.FLOOR, slots.GAIN1, slots.GAIN2):
        assert table[program, part] == pytest.approx(mean(new, dense) / mean(old, dense))
    others = [
        i for i in range(slots.TRAITS) if i not in {slots.INSTR, slots.CORE, slots.FLOOR, slots.GAIN1, slots.GAIN2}
    ]
    assert (table[:, others] == 1.0).all()
    assert table[BUILDS.release_day == NEVER] == pytest.approx(1.0)


def test_a_share_of_builds_never_reaches_the_repository():
    assert built(asked(releases=Releases(unstored_share=0.0))).stored.all()
    assert not built(asked(releases=Releases(unstored_share=1.0))).stored.any()


def test_a_further_program_changes_no_build_of_the_others():
    fewer = replace(PROGRAMS, names=PROGRAMS.names[1:], start=PROGRAMS.start[1:],
                    image_of_program=PROGRAMS.image_of_program[1:])  # fmt: skip
    world = asked(compiler=Compiler(start_s=0.0, until_s=2 * DAYS * 86400.0))
    every, without = (build_builds(world, programs) for programs in (PROGRAMS, fewer))
    assert (without.release_day == every.release_day[1:]).all()
    assert (without.recompiled == every.recompiled[1:]).all()
    assert 0 < every.recompiled.sum() < (every.release_day < NEVER).sum()
    rest = PROGRAMS.image_of_program[1:]
    told = [[table.build_id[build] for build in table.of_image[rest].ravel()] for table in (every, without)]
    assert told[0] == told[1]


def test_a_world_of_one_day_sees_no_release():
    assert (build_builds(replace(WORLD, horizon_s=86400.0), PROGRAMS).release_day == NEVER).all()


SOFTWARE = fleet()[2]
PROGRAMS, BUILDS = SOFTWARE.programs, SOFTWARE.builds


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
