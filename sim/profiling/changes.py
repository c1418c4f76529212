"""What new builds and the new kernel change: factors on the instructions of functions, each belonging to its name."""

import numpy as np

from models.arrays import Bools, Floats
from models.profiling.images import KERNEL
from models.profiling.programs import Programs
from models.profiling.world import ProfileWorld
from sim.profiling.noise import keys_of, mixed, normals, uniforms


def release_factors(world: ProfileWorld, programs: Programs, released: Bools, recompiled: Bools) -> Floats:
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
    >>> from models.fleet.jobs import build_jobs
    >>> from models.fleet.machines import build_machines
    >>> from models.profiling.programs import build_programs
    >>> from models.fleet.world import Fleet, Population
    >>> world = ProfileWorld(2, 86400.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    >>> programs = build_programs(world, build_jobs(world, build_machines(world)), ["haswell_2698v3"])
    >>> none = np.zeros(12, bool)
    >>> bool((release_factors(world, programs, none, none) == 1.0).all())
    True
    """
    code, asked = programs.code, world.profiling.releases
    change = np.exp(asked.change_log_sd * _per_function(world, programs, "changes by releases"))
    changed = np.where(changed_functions(world, programs), change, 1.0)
    compiled = _compiled_factors(world, programs)
    factor = np.ones(programs.function.size)
    for number in np.flatnonzero(released).tolist():
        function = programs.functions(number)
        own = code.image[function] == programs.image_of_program[number]
        of_compiler = compiled[function] if recompiled[number] else 1.0
        factor[programs.entries(number)] = np.where(own, changed[function], 1.0) * of_compiler
    return factor


def changed_functions(world: ProfileWorld, programs: Programs) -> Bools:
    """Return (G,) which functions a release of their program changes, where they are of its own code.

    Examples
    --------
    >>> from models.fleet.jobs import build_jobs
    >>> from models.fleet.machines import build_machines
    >>> from models.profiling.programs import build_programs
    >>> from models.fleet.world import Fleet, Population
    >>> world = ProfileWorld(2, 172800.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    >>> programs = build_programs(world, build_jobs(world, build_machines(world)), ["haswell_2698v3"])
    >>> bool(0.1 < changed_functions(world, programs).mean() < 0.2)
    True
    """
    chosen = uniforms(mixed(programs.code.key, keys_of(world.seed, "functions that a release changes")))
    return np.asarray(chosen < world.profiling.releases.changed_functions)


def _compiled_factors(world: ProfileWorld, programs: Programs) -> Floats:
    """Return (G,) factors of the new compiler on all code that is compiled into programs."""
    compiler = world.profiling.compiler
    if compiler is None:
        return np.ones(programs.code.count)
    spread = compiler.log_sd * _per_function(world, programs, "code of the new compiler")
    drawn = compiler.instructions_factor * np.exp(spread - 0.5 * compiler.log_sd**2)
    return np.where(np.isin(programs.kinds, ["program", "library"])[programs.code.image], drawn, 1.0)


def kernel_factors(world: ProfileWorld, programs: Programs) -> Floats:
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
    >>> from models.fleet.jobs import build_jobs
    >>> from models.fleet.machines import build_machines
    >>> from models.profiling.programs import build_programs
    >>> from models.fleet.world import Fleet, Population
    >>> world = ProfileWorld(2, 86400.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    >>> programs = build_programs(world, build_jobs(world, build_machines(world)), ["haswell_2698v3"])
    >>> np.unique(programs.code.image[kernel_factors(world, programs) != 1.0])
    array([0])
    """
    asked = world.profiling.kernel
    sd = asked.function_log_sd if asked else 0.0
    spread = sd * _per_function(world, programs, "functions of the new kernel")
    return np.where(programs.code.image == KERNEL, np.exp(spread), 1.0)


def _per_function(world: ProfileWorld, programs: Programs, name: str) -> Floats:
    return normals(mixed(programs.code.key, keys_of(world.seed, name)))
