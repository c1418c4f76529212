"""Programs: which functions each job is made of, in which it spends its instructions, and how they are reached.

A job is one program, linked from code of its own and of shared libraries, calling the kernel. Input data put its
instances into states: in each further state the profile of its own code is flatter, so that entropies fall into
clusters (Ren et al. 2010, figure 5). Memory and locks have profiles of their own, over few functions, that no state
changes (figure 6b).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.fleet.inventory import Jobs
from models.profiling import world as profiles
from models.profiling.call_paths import CallPaths, Members, call_paths, joined
from models.profiling.function_names import handlers_of
from models.profiling.functions import Functions, core_cpi, hit_rates, together
from models.profiling.images import GENERATED, OwnImage, SharedImage, generated_code, own_image, shared_images
from models.profiling.world import ProfileWorld
from models.randomness import stream, streams


@dataclass(frozen=True, slots=True, eq=False)
class ProgramArrays:
    """Arrays over I images, G functions, J programs (one for each job) and E entries: the functions of each program.

    Program j has the entries `start[j]` to `start[j + 1]`: its own functions, `main` first, those of libraries, of
    generated code, and of the kernel and its module.
    """

    names: tuple[str, ...]
    """(J,) applications, the jobs' names."""
    images: tuple[str, ...]
    kinds: tuple[str, ...]
    """(I,) program, library, kernel, module or generated."""
    image_of_program: Ints
    code: Functions
    start: Ints
    function: Ints
    """(E,) numbers in `code`."""
    weight: Floats
    """(S, E) share of a program's instructions in each state, sum 1 over each program."""
    states: Ints
    """(J,) states that each program has."""
    allocation: Floats
    """(E,) share of a program's live heap that each function allocated, sum 1."""
    lock: Floats
    """(E,) share of a program's waiting for locks, sum 1."""
    paths: CallPaths
    """Call paths to each entry."""
    threads: Ints
    """(J,) threads of an instance at its mean use."""
    heap_bytes: Floats
    """(J,) live heap of an instance at its mean use."""
    mean_use_vcpu: Floats
    """(J,) busy threads of an instance, as the job expects."""
    lock_share: Floats
    """(J,) share of threads' time spent waiting for locks."""
    stacks: Bools
    """(J,) whether it links the profiling library."""
    platforms: tuple[str, ...]
    core_cpi: Floats
    """(P, G) cycles per instruction but for memory stalls."""
    l2_hits: Floats
    """(P, G) first-level misses that the second level has, per instruction."""
    llc_hits: Floats
    """(P, G) second-level misses that the last level has, per instruction."""
    how: profiles.Programs
    """What was asked."""
    seed: int

    @property
    def count(self) -> int:
        """Number of programs."""
        return len(self.names)

    def entries(self, program: int) -> slice:
        """Return which entries are a program's."""
        return slice(int(self.start[program]), int(self.start[program + 1]))

    def functions(self, program: int) -> Ints:
        """Return the numbers of a program's functions, in the order of its entries."""
        return self.function[self.entries(program)]


def build_programs(world: ProfileWorld, jobs: Jobs, platforms: Sequence[str]) -> ProgramArrays:
    """Return the programs that the jobs of a world are.

    Every program and library draws from streams of its own name: a further one changes no other. (What jobs are asked
    for on their machines, and with it threads and heap, may change with the jobs beside them.)

    Parameters
    ----------
    world : its `profiling.programs`
    jobs : J jobs
    platforms : P names of the platforms on which they may run
    """
    how, seed = world.profiling.programs, world.seed
    shared = shared_images(how, seed, jobs.names)
    own = [own_image(how, seed, name) for name in jobs.names]
    code = together([*(part.code for part in shared), *(part.code for part in own), generated_code(how, seed)])
    first = np.searchsorted(code.image, np.arange(len(shared) + len(own) + 1))
    paths = [partial(call_paths, median=how.paths, rng=stream(seed, f"call paths of {name}")) for name in jobs.names]
    parts = [_linked(number, shared, own[number], first, paths[number]) for number in range(jobs.count)]
    start = np.concatenate([[0], np.cumsum([part.function.size for part in parts])])
    states = np.where(_uniforms(seed, "states", jobs.names)[:, 0] < how.two_state_share, how.states, 1)
    weight = [_states(part, int(n), how) for part, n in zip(parts, states, strict=True)]
    sheets = [world.machines[name] for name in platforms]
    hits = [hit_rates(code, sheet) for sheet in sheets]
    threads, heap, waits, links = _uniforms(seed, "instances", jobs.names).T
    return ProgramArrays(
        names=jobs.names,
        images=(*(part.image for part in shared), *jobs.names, GENERATED),
        kinds=(*(part.kind for part in shared), *["program"] * jobs.count, "generated"),
        image_of_program=len(shared) + np.arange(jobs.count),
        code=code,
        start=start,
        function=np.concatenate([part.function for part in parts]),
        weight=np.concatenate(weight, axis=1),
        states=states.astype(np.int64),
        allocation=np.concatenate([part.allocation for part in parts]),
        lock=np.concatenate([part.lock for part in parts]),
        paths=joined([part.paths for part in parts]),
        threads=np.ceil(jobs.instance_quota_vcpu * (1.5 + 6.0 * threads)).astype(np.int64) + 2,
        heap_bytes=jobs.instance_memory_bytes * (0.3 + 0.5 * heap),
        mean_use_vcpu=jobs.utilisation * jobs.instance_quota_vcpu,
        lock_share=0.005 + 0.05 * waits**2,
        stacks=links < how.profiling_share,
        platforms=tuple(platforms),
        core_cpi=np.array([core_cpi(code, sheet) for sheet in sheets]),
        l2_hits=np.array([l2 for l2, _ in hits]),
        llc_hits=np.array([llc for _, llc in hits]),
        how=how,
        seed=seed,
    )


def _uniforms(seed: int, what: str, names: Sequence[str]) -> Floats:
    """Return (J, 4) draws in 0..1 that belong to the programs' names."""
    return np.reshape([rng.random(4) for rng in streams(seed, what, names)], (-1, 4))


@dataclass(frozen=True, slots=True)
class _Linked:
    """A program's entries, the first `own` of which are its own functions."""

    own: int
    function: Ints
    weight: Floats
    allocation: Floats
    lock: Floats
    paths: CallPaths


def _linked(
    number: int, shared: list[SharedImage], own: OwnImage, first: Ints, paths: Callable[[Members], CallPaths]
) -> _Linked:
    """Return a program linked from its own code and shared images, the first function of each of which is given."""
    linked = [(i, part) for i, part in enumerate(shared) if part.share[number] > 0]
    parts = [(first[i] + np.arange(part.mix.shape[1]), part.share[number] * part.mix[number]) for i, part in linked]
    kinds = [part.kind for _, part in linked]
    libraries = [part for part, kind in zip(parts, kinds, strict=True) if kind == "library"]
    kernel = [part for part, kind in zip(parts, kinds, strict=True) if kind != "library"]
    rest = 1.0 - float(sum(part.share[number] for _, part in linked))
    if own.generated:
        libraries.append((np.array([first[-1]]), np.array([rest * own.generated])))
    mine = first[len(shared) + number] + np.arange(own.mix.size)
    ordered = [(mine, rest * (1.0 - own.generated) * own.mix), *libraries, *kernel]
    weight = np.concatenate([part[1] for part in ordered])
    outside = np.zeros(weight.size - own.mix.size)
    members = Members(mine, handlers_of(mine.size), _numbers(libraries), _numbers(kernel))
    return _Linked(
        own=own.mix.size,
        function=np.concatenate([part[0] for part in ordered]),
        weight=weight / weight.sum(),
        allocation=np.concatenate([own.allocation, outside]),
        lock=np.concatenate([own.lock, outside]),
        paths=paths(members),
    )


def _numbers(parts: list[tuple[Ints, Floats]]) -> Ints:
    return np.concatenate([part[0] for part in parts]) if parts else np.zeros(0, np.int64)


def _states(program: _Linked, states: int, how: profiles.Programs) -> Floats:
    """Return (S, entries) weights in each state; a program with fewer states has its first one in the others."""
    weight = np.tile(program.weight, (how.states, 1))
    for state in range(1, states):
        weight[state, : program.own] = flattened(program.weight[: program.own], how.state_flattening**state)
    return weight


def flattened(weight: Floats, power: float) -> Floats:
    """Return weights raised to a power, their sum as before.

    Parameters
    ----------
    weight : (n,) array
    power : less than 1: a flatter profile
    """
    raised = weight**power
    return np.asarray(raised * (weight.sum() / raised.sum()))
