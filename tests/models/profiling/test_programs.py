"""Programs: what they are made of, how their profiles differ, and what a further one changes."""

from dataclasses import fields, replace

import numpy as np
import pytest

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Fleet, Population
from models.platforms import PLATFORMS, REFERENCE_CORE_CPI
from models.profiling.functions import core_cpi
from models.profiling.images import GENERATED, UNKNOWN
from models.profiling.programs import build_programs, flattened
from models.profiling.world import Library, ProfileWorld, Profiling, Programs

WORLD = ProfileWorld(seed=4, fleet=Fleet(100), population=Population(150, 100, heavyweights=8))
NAMES = ("haswell_2698v3", "skylake_6148")


def made(world=WORLD, platforms=NAMES):
    return build_programs(world, build_jobs(world, build_machines(world)), platforms)


def asked(**changes):
    return replace(WORLD, profiling=Profiling(programs=replace(Programs(), **changes)))


PROGRAMS = made()
OWNER = np.repeat(np.arange(PROGRAMS.count), np.diff(PROGRAMS.start))


def shares(programs, image, weight):
    """Share of each program's weight that lies in an image."""
    owner = np.repeat(np.arange(programs.count), np.diff(programs.start))
    there = programs.code.image[programs.function] == programs.images.index(image)
    return np.bincount(owner, weight * there) / np.bincount(owner, weight)


def entropy(weight):
    return np.bincount(OWNER, -weight * np.log(np.maximum(weight, 1e-300)))


def test_weights_sum_to_one_in_every_state():
    for weight in PROGRAMS.weight:
        assert np.bincount(OWNER, weight) == pytest.approx(np.ones(PROGRAMS.count), abs=1e-12)
    for profile in (PROGRAMS.allocation, PROGRAMS.lock):
        assert np.bincount(OWNER, profile) == pytest.approx(np.ones(PROGRAMS.count), abs=1e-12)


def test_names_are_unique_within_an_image_and_keys_within_all():
    code = PROGRAMS.code
    assert len(set(zip(code.image.tolist(), code.name, strict=True))) == code.count == np.unique(code.key).size
    assert {code.name[PROGRAMS.functions(program)[0]] for program in range(PROGRAMS.count)} == {"main"}


def test_a_program_has_its_own_functions_those_it_links_and_all_of_the_kernel():
    own = PROGRAMS.code.image[PROGRAMS.function] == PROGRAMS.image_of_program[OWNER]
    assert (np.bincount(OWNER, own) >= 3).all()
    kinds = np.array(PROGRAMS.kinds)[PROGRAMS.code.image[PROGRAMS.function]]
    assert (np.bincount(OWNER, np.isin(kinds, ["kernel", "module"])) == Programs().kernel_functions).all()
    assert (own == (kinds == "program")).all()


def test_the_compression_library_is_a_twentieth_of_the_sum_and_a_fifth_of_few_programs():
    cost = PROGRAMS.core_cpi[0][PROGRAMS.function]
    for weight in PROGRAMS.weight:
        share = shares(PROGRAMS, "libz", weight * cost)
        assert 0.03 < share.mean() < 0.07
        assert (share > 0.2).mean() < 0.05
    of_one = PROGRAMS.code.image == PROGRAMS.images.index("libz")
    assert of_one.sum() == 12


def test_mean_shares_are_those_asked_for():
    """Means of 150 log-normal draws of spread 0.4 and 0.35: outside of 12% of the mean once in 2,000 worlds."""
    assert shares(PROGRAMS, "liballoc", PROGRAMS.weight[0]).mean() == pytest.approx(0.06, rel=0.12)
    kernel = shares(PROGRAMS, "kernel", PROGRAMS.weight[0]) + shares(PROGRAMS, "nic", PROGRAMS.weight[0])
    assert kernel.mean() == pytest.approx(0.18, rel=0.12)


def test_entropies_of_programs_with_two_states_lie_in_two_clusters():
    two = PROGRAMS.states == 2
    gap = (entropy(PROGRAMS.weight[1]) - entropy(PROGRAMS.weight[0]))[two]
    assert 0.4 < two.mean() < 0.6
    assert (gap > 0.15).mean() > 0.95
    assert (PROGRAMS.weight[0] == PROGRAMS.weight[1])[~two[OWNER]].all()


def test_taxes_have_the_same_share_in_every_state():
    for image in ("libz", "kernel"):
        assert shares(PROGRAMS, image, PROGRAMS.weight[1]) == pytest.approx(shares(PROGRAMS, image, PROGRAMS.weight[0]))


def test_shared_code_costs_what_it_is_known_to_cost_and_own_code_the_reference():
    own = PROGRAMS.code.image[PROGRAMS.function] == PROGRAMS.image_of_program[OWNER]
    weight = np.where(own, PROGRAMS.weight[0], 0.0)
    mean = np.bincount(OWNER, weight * PROGRAMS.core_cpi[0][PROGRAMS.function]) / np.bincount(OWNER, weight)
    assert mean == pytest.approx(np.full(PROGRAMS.count, REFERENCE_CORE_CPI))


def test_core_cpi_is_that_of_each_platform():
    for row, name in zip(PROGRAMS.core_cpi, NAMES, strict=True):
        assert (row == core_cpi(PROGRAMS.code, PLATFORMS[name])).all()


def test_a_further_library_or_platform_shifts_no_draw_of_the_others():
    library = Library("libxml", 7, 0.05, 1.0, 0.4)
    more = made(asked(libraries=(*Programs().libraries, library)), (*NAMES, "rome_7742"))
    number = {key: i for i, key in enumerate(more.code.key.tolist())}
    same = np.array([number[key] for key in PROGRAMS.code.key.tolist()])
    assert (more.code.core_base[same] == PROGRAMS.code.core_base).all()
    assert (more.core_cpi[:2, same] == PROGRAMS.core_cpi).all()
    assert (more.threads == PROGRAMS.threads).all()
    assert (more.states == PROGRAMS.states).all()
    for program in (0, 7, 149):
        ours = np.flatnonzero(PROGRAMS.code.image[PROGRAMS.functions(program)] == PROGRAMS.image_of_program[program])
        before = PROGRAMS.weight[:, PROGRAMS.entries(program)][:, ours]
        after = more.weight[:, more.entries(program)][:, ours]
        assert after / after.sum() == pytest.approx(before / before.sum())


def test_a_further_job_shifts_no_draw_of_the_others():
    """Twelve jobs and a thirteenth in their midst: all that does not follow from quotas stays, to the last bit."""
    jobs = build_jobs(WORLD, build_machines(WORLD))
    some = np.array([0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12])

    def of(which):
        changes = {f.name: getattr(jobs, f.name)[which] for f in fields(jobs) if f.name != "names"}
        return build_programs(WORLD, replace(jobs, names=tuple(jobs.names[i] for i in which), **changes), NAMES)

    few, more = of(some), of(np.arange(13))
    names = ("states", "threads", "heap_bytes", "mean_use_vcpu", "lock_share", "stacks")
    for name in names:
        np.testing.assert_array_equal(getattr(more, name)[some], getattr(few, name))
    for i, j in enumerate(some):
        ours, theirs = few.entries(i), more.entries(j)
        np.testing.assert_array_equal(few.weight[:, ours], more.weight[:, theirs])
        np.testing.assert_array_equal(few.code.key[few.function[ours]], more.code.key[more.function[theirs]])
        np.testing.assert_array_equal(few.core_cpi[:, few.function[ours]], more.core_cpi[:, more.function[theirs]])
        for name in ("allocation", "lock"):
            np.testing.assert_array_equal(getattr(few, name)[ours], getattr(more, name)[theirs])


def test_programs_without_libraries_jit_or_module_are_programs_too():
    world = asked(libraries=(), jit_share=0.0, kernel_functions=1, functions=3, functions_log_sd=0.0, states=1)
    bare = made(world)
    assert "library" not in bare.kinds
    assert (np.diff(bare.start) == 4).all()
    assert bare.weight.shape[0] == 1
    assert bare.weight.sum() == pytest.approx(bare.count)


def test_every_program_may_run_generated_code_that_has_one_unknown_function():
    jit = made(asked(jit_share=1.0))
    assert jit.images[-1] == GENERATED
    assert jit.code.name[-1] == UNKNOWN
    assert (shares(jit, GENERATED, jit.weight[0]) > 0.05).all()
    assert set(jit.kinds) == {"kernel", "module", "library", "program", "generated"}


def test_shares_that_would_leave_a_program_nothing_are_cut():
    crowded = made(asked(libraries=(Library("libbig", 5, 0.9, 1.0, 0.5),)))
    assert shares(crowded, "libbig", crowded.weight[0]).max() < 0.8
    own = (
        crowded.code.image[crowded.function]
        == crowded.image_of_program[np.repeat(np.arange(150), np.diff(crowded.start))]
    )
    assert (crowded.weight[:, own] > 0).all()


def test_few_functions_allocate_and_fewer_hold_locks():
    sites, locks = (np.bincount(OWNER, profile > 0) for profile in (PROGRAMS.allocation, PROGRAMS.lock))
    assert sites.mean() > locks.mean()
    assert locks.min() >= 1


def test_flattening_keeps_order_and_sum():
    weight = np.array([0.5, 0.3, 0.05])
    flat = flattened(weight, 0.45)
    assert flat.sum() == pytest.approx(weight.sum())
    assert (np.diff(flat) < 0).all()
    assert flat[0] / flat[2] == pytest.approx(10**0.45)
