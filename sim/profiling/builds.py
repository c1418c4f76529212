"""Builds: what was compiled when, from which source and by which compiler, and what a new build or kernel changes.

Changes are factors on the instructions of functions, each belonging to its name.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import DAY_S, HOUR_S, Bools, Floats, Ints
from models.fleet.inventory import Jobs
from models.profiling.images import KERNEL
from models.profiling.programs import ProgramArrays
from models.profiling.world import Compiler, ProfileWorld
from models.randomness import stream, streams
from sim.fleet import slots
from sim.fleet.arms import NEVER
from sim.fleet.day import Day
from sim.profiling.draws import keys_of, mixed, normals, uniforms


def release_factors(world: ProfileWorld, programs: ProgramArrays, released: Bools, recompiled: Bools) -> Floats:
    """Return the factors of new builds: releases change some own functions, the new compiler all that is linked.

    Parameters
    ----------
    world : what releases and the compiler change
    programs : J programs
    released, recompiled : (J,) which have a new build, and which of these by the new compiler

    Returns
    -------
    (E,) array, instructions of each entry relative to the old build; 1 in programs without a new one

    Examples
    --------
    >>> from models.fleet.inventory import build_jobs, build_machines
    >>> from models.profiling.programs import build_programs
    >>> from models.fleet.world import Fleet, Population
    >>> world = ProfileWorld(2, 86400.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    >>> programs = build_programs(world, build_jobs(world, build_machines(world)), ["haswell_2698v3"])
    >>> none = np.zeros(12, bool)
    >>> bool((release_factors(world, programs, none, none) == 1.0).all())
    True
    """
    code, releases = programs.code, world.profiling.releases
    change = np.exp(releases.change_log_sd * _per_function(world, programs, "changes by releases"))
    changed = np.where(changed_functions(world, programs), change, 1.0)
    compiled = _compiled_factors(world, programs)
    factor = np.ones(programs.function.size)
    for number in np.flatnonzero(released).tolist():
        function = programs.functions(number)
        own = code.image[function] == programs.image_of_program[number]
        of_compiler = compiled[function] if recompiled[number] else 1.0
        factor[programs.entries(number)] = np.where(own, changed[function], 1.0) * of_compiler
    return factor


def changed_functions(world: ProfileWorld, programs: ProgramArrays) -> Bools:
    """Return (G,) which functions a release of their program changes, where they are of its own code."""
    chosen = uniforms(mixed(programs.code.key, keys_of(world.seed, "functions that a release changes")))
    return np.asarray(chosen < world.profiling.releases.changed_functions)


def _compiled_factors(world: ProfileWorld, programs: ProgramArrays) -> Floats:
    """Return (G,) factors of the new compiler on all code that is compiled into programs."""
    compiler = world.profiling.compiler
    if compiler is None:
        return np.ones(programs.code.count)
    spread = compiler.log_sd * _per_function(world, programs, "code of the new compiler")
    drawn = compiler.instructions_factor * np.exp(spread - 0.5 * compiler.log_sd**2)
    return np.where(np.isin(programs.kinds, ["program", "library"])[programs.code.image], drawn, 1.0)


def kernel_factors(world: ProfileWorld, programs: ProgramArrays) -> Floats:
    """Return by what factor the new kernel changes the instructions of each function; 1 for all but its own.

    Parameters
    ----------
    world : its kernel roll-out
    programs : G functions

    Returns
    -------
    (G,) array

    Examples
    --------
    >>> from models.fleet.inventory import build_jobs, build_machines
    >>> from models.profiling.programs import build_programs
    >>> from models.fleet.world import Fleet, Population
    >>> world = ProfileWorld(2, 86400.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    >>> programs = build_programs(world, build_jobs(world, build_machines(world)), ["haswell_2698v3"])
    >>> np.unique(programs.code.image[kernel_factors(world, programs) != 1.0])
    array([0])
    """
    rollout = world.profiling.kernel
    sd = rollout.function_log_sd if rollout else 0.0
    spread = sd * _per_function(world, programs, "functions of the new kernel")
    return np.where(programs.code.image == KERNEL, np.exp(spread), 1.0)


def _per_function(world: ProfileWorld, programs: ProgramArrays, name: str) -> Floats:
    return normals(mixed(programs.code.key, keys_of(world.seed, name)))


OLD, NEW = 0, 1
BUILDERS = ("autobuild-1", "autobuild-2", "team-build", "release-farm")
"""Who builds programs; what all share comes from the release farm."""
OLDEST_S = 28 * DAY_S
"""No build that still runs was made longer before the horizon; revisions count the hours since, from 1000."""
LEAD_S = 6 * HOUR_S
"""A build is made so long before its first wave."""


@dataclass(frozen=True, slots=True, eq=False)
class Builds:
    """Arrays over B builds, and what the new one of each of J programs is and changes."""

    image: Ints
    """(B,) in the programs' images."""
    build_id: tuple[str, ...]
    revision: tuple[str, ...]
    compiler: tuple[str, ...]
    builder: tuple[str, ...]
    built_s: Floats
    stored: Bools
    """(B,) whether its unstripped binary is in the symbol repository."""
    of_image: Ints
    """(I, 2) old and new build of each image, the same where there is one; −1: none (generated code)."""
    release_day: Ints
    """(J,) day at whose midnight the new build's first wave starts; `NEVER`: no new build."""
    recompiled: Bools
    """(J,) whether the new build is by the new compiler."""
    factor: Floats
    """(E,) instructions of each entry of a program under the new build, relative to the old."""
    kernel_factor: Floats
    """(G,) instructions of the kernel's functions under its new version relative to the old; 1 for all others."""

    @property
    def count(self) -> int:
        """Number of builds."""
        return len(self.build_id)


def build_builds(world: ProfileWorld, programs: ProgramArrays) -> Builds:
    """Return every build that runs within the horizon.

    Parameters
    ----------
    world : releases, compiler and kernel roll-outs, horizon
    programs : J programs
    """
    day = _release_days(world, programs)
    recompiled = _recompiled(world, programs, day)
    rows = _rows(world, programs, day, recompiled)
    image, number = np.array([row.image for row in rows]), np.arange(len(rows))
    of_image = np.full((len(programs.images), 2), -1)
    of_image[image[::-1], OLD], of_image[image, NEW] = number[::-1], number
    return Builds(
        image=image,
        build_id=tuple(row.build_id for row in rows),
        revision=tuple(row.revision for row in rows),
        compiler=tuple(row.compiler for row in rows),
        builder=tuple(row.builder for row in rows),
        built_s=np.array([row.built_s for row in rows]),
        stored=np.array([row.stored for row in rows]),
        of_image=of_image,
        release_day=day,
        recompiled=recompiled,
        factor=release_factors(world, programs, day < NEVER, recompiled),
        kernel_factor=kernel_factors(world, programs),
    )


def residence_release(world: ProfileWorld, day: Day, builds: Builds) -> Ints:
    """Return the epoch from which each residence runs the new build of its program.

    A release goes over the instances of a program wave by wave, a wave each midnight; instances are drawn at random,
    and a residence is of the wave of its instance.

    Parameters
    ----------
    world : waves of releases
    day : R residences in its timeline
    builds : when each program is released

    Returns
    -------
    (R,) array of epochs, `sim.fleet.arms.NEVER` for those that never do: `sim.fleet.arms.Arm.stay_from`
    """
    timeline = day.timeline
    uniform = stream(world.seed, "waves of releases").random(int(timeline.instance.max(initial=-1)) + 1)
    shares = np.maximum.accumulate(np.array(world.profiling.releases.wave_shares))
    wave = np.searchsorted(shares, uniform, side="right")[timeline.instance]
    first = builds.release_day[timeline.job]
    epochs = round(DAY_S / world.epoch_s)
    return np.where((first < NEVER) & (wave < shares.size), (np.minimum(first, 2**20) + wave) * epochs, NEVER)


def software_factors(programs: ProgramArrays, builds: Builds, jobs: Jobs) -> Floats:
    """Return by what factor the new build changes each trait of each job, in the first state on the reference.

    Instructions per request follow those of the functions; core CPI and memory accesses per instruction follow from
    the share that more expensive or cheaper functions then have.

    Parameters
    ----------
    programs, builds : J programs
    jobs : the same as jobs

    Returns
    -------
    (J, TRAITS) array in the columns of `sim.fleet.slots`, as `software_table`; 1: no change
    """
    table = np.ones((jobs.count, slots.TRAITS))
    for number in np.flatnonzero(builds.release_day < NEVER).tolist():
        here = programs.entries(number)
        function, before = programs.function[here], programs.weight[0, here]
        after = before * builds.factor[here]
        core, dense = programs.core_cpi[0, function], programs.code.miss_intensity[function]
        instructions = after.sum() / before.sum()
        table[number, slots.INSTR] = instructions
        table[number, slots.CORE] = (after * core).sum() / (before * core).sum() / instructions
        misses = (after * dense).sum() / (before * dense).sum() / instructions
        for part in (slots.FLOOR, slots.GAIN1, slots.GAIN2):
            table[number, part] = misses
    return table


def _release_days(world: ProfileWorld, programs: ProgramArrays) -> Ints:
    """Return the day of each program's release: any but the first, for the share of them that is released."""
    drawn = [rng.random(2) for rng in streams(world.seed, "release", programs.names)]
    chosen, when = np.reshape(drawn, (-1, 2)).T
    day = 1 + np.floor(when * (world.days - 1)).astype(np.int64)
    return np.where((chosen < world.profiling.releases.share) & (world.days > 1), day, NEVER)


def _recompiled(world: ProfileWorld, programs: ProgramArrays, day: Ints) -> Bools:
    """Return which releases are built by the new compiler: a share that grows linearly over its roll-out."""
    compiler = world.profiling.compiler
    uniform = np.array([rng.random() for rng in streams(world.seed, "compiler of the release", programs.names)])
    if compiler is None:
        return np.zeros(day.size, np.bool_)
    length_s = max(compiler.until_s - compiler.start_s, 1.0)
    ready = np.clip((np.minimum(day, 2**20) * DAY_S - compiler.start_s) / length_s, 0.0, 1.0)
    return np.asarray((uniform < ready) & (day < NEVER))


@dataclass(frozen=True, slots=True)
class _Build:
    """One build."""

    image: int
    build_id: str
    revision: str
    compiler: str
    builder: str
    built_s: float
    stored: bool


def _rows(world: ProfileWorld, programs: ProgramArrays, day: Ints, recompiled: Bools) -> list[_Build]:
    """Return every build, image by image, the old one first."""
    compiler = world.profiling.compiler or Compiler()
    released = dict(zip(programs.image_of_program.tolist(), day.tolist(), strict=True))
    newly = dict(zip(programs.image_of_program.tolist(), recompiled.tolist(), strict=True))
    rows = []
    for image, kind in enumerate(programs.kinds):
        if kind == "generated":
            continue
        old_s, new_s = _built_s(world, programs, image, released.get(image, NEVER))
        rows.append(_build(world, programs, (image, OLD), compiler.old, old_s))
        if new_s is not None:
            by = compiler.new if newly.get(image) else compiler.old
            rows.append(_build(world, programs, (image, NEW), by, new_s))
    return rows


def _built_s(world: ProfileWorld, programs: ProgramArrays, image: int, day: int) -> tuple[float, float | None]:
    """Return when the old build of an image was made, and the new one if there is one."""
    age = stream(world.seed, f"builds of {programs.kinds[image]} {programs.images[image]}").random()
    rollout, old_s = world.profiling.kernel, -OLDEST_S * age - LEAD_S
    if image == KERNEL:
        return old_s, rollout.start_s - LEAD_S if rollout else None
    return old_s, day * DAY_S - LEAD_S if day < NEVER else None


def _build(
    world: ProfileWorld, programs: ProgramArrays, which: tuple[int, int], compiler: str, built_s: float
) -> _Build:
    image, generation = which
    kind, name, rollout = programs.kinds[image], programs.images[image], world.profiling.kernel
    rng = stream(world.seed, f"build {generation} of {kind} {name}")
    revision = f"r{1000 + int((built_s + OLDEST_S + DAY_S) // HOUR_S)}"
    if image == KERNEL and rollout:
        revision = (rollout.old, rollout.new)[generation]
    builder = BUILDERS[rng.integers(len(BUILDERS))] if kind == "program" else BUILDERS[-1]
    stored = bool(rng.random() >= world.profiling.releases.unstored_share)
    return _Build(image, rng.bytes(20).hex(), revision, compiler, builder, built_s, stored)
