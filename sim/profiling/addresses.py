"""Addresses: where each build of an image put its functions and lines.

Every build lays its image out anew: functions in another order, with other gaps. An address is an offset within the
image. Code generated at run time is in no image; its addresses are high, and nobody can name them. Besides the images
of the programs there is that of the daemon that every machine runs.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from models.arrays import Ints
from models.profiling.functions import Functions, image_functions
from models.profiling.images import MODULE
from models.profiling.programs import ProgramArrays
from models.profiling.world import ProfileWorld
from models.randomness import key
from sim.profiling.builds import Builds
from sim.profiling.draws import Keys, mixed

DAEMON = "fleetd"
"""Image of the daemon that monitors its machine, keeps its gate and runs the profilers."""
DAEMON_FUNCTIONS = (
    ("main", "fleetd/main.cc"),
    ("fleetd::Loop::run", "fleetd/main.cc"),
    ("fleetd::Gatekeeper::admit", "fleetd/gatekeeper.cc"),
    ("fleetd::Profiler::drain_buffer", "fleetd/profiler.cc"),
    ("fleetd::Profiler::write_profile", "fleetd/profiler.cc"),
    ("fleetd::Monitor::read_proc", "fleetd/monitor.cc"),
    ("fleetd::Monitor::aggregate", "fleetd/monitor.cc"),
    ("fleetd::Health::check_disks", "fleetd/health.cc"),
)
"""Its functions and their files."""
GENERATED_BASE, GENERATED_STEP = 0x7F00_0000_0000, 2**24
"""Where code generated at run time lies, and how far that of one program from that of the next."""
FIRST_ADDRESS, ALIGNMENT, MOST_GAP = 0x1000, 16, 4
"""First address of code in an image, alignment of functions, and most multiples of it between two of them."""
INSTRUCTION_BYTES, MOST_INSTRUCTIONS = 4, 12
"""Bytes of an instruction, and most instructions of a source line."""


@dataclass(frozen=True, slots=True, eq=False)
class Addresses:
    """Where functions and lines are, over B images built, G functions and L lines of code.

    `code` and `images` are those of the programs and the daemon's. Functions of one image are consecutive, from
    `first[image]`. Build b of image i has function f at `function_start[build_start[b] + f - first[i]]`; line l of a
    function is `line_offset[l]` bytes on and has `instructions[l]` instructions.
    """

    code: Functions
    images: tuple[str, ...]
    kinds: tuple[str, ...]
    first: Ints
    image_of_build: Ints
    of_image: Ints
    """(I, 2) old and new build of each image, −1 for code generated at run time."""
    build_start: Ints
    function_start: Ints
    line_offset: Ints
    instructions: Ints

    @property
    def daemon(self) -> int:
        """Image of the daemon."""
        return len(self.images) - 1

    @property
    def generated(self) -> int:
        """Image that stands for code without one."""
        return self.kinds.index("generated")

    def start_of(self, build: Ints, function: Ints, program: Ints) -> Ints:
        """Return the address at which each function begins in a build; without a build, that in the program's memory.

        Parameters
        ----------
        build, function, program : (n,) arrays; build −1 is code generated at run time
        """
        place = function - self.first[self.code.image[function]]
        inside = self.function_start[np.where(build >= 0, self.build_start[build] + place, 0)]
        return np.where(build >= 0, inside, GENERATED_BASE + program * GENERATED_STEP)

    def build_of(self, function: Ints, new_build: Ints, new_kernel: Ints) -> Ints:
        """Return the build that each function runs in.

        Parameters
        ----------
        function : (n,) array
        new_build, new_kernel : (n,) arrays, 1 where the process has its new build, and its machine the new kernel
        """
        image = self.code.image[function]
        return np.asarray(self.of_image[image, np.where(image <= MODULE, new_kernel, new_build)])

    def call_site(self, caller: Ints, callee: Ints) -> Ints:
        """Return how many bytes into the caller the call of the callee returns: always at the same line.

        Parameters
        ----------
        caller, callee : (n,) arrays of functions
        """
        lines = self.code.line_start[caller + 1] - self.code.line_start[caller]
        pair = mixed(self.code.key[caller], self.code.key[callee])
        line = self.code.line_start[caller] + (pair % lines.astype(np.uint64)).astype(np.int64)
        return self.line_offset[line] + (self.instructions[line] - 1) * INSTRUCTION_BYTES


def lay_out_images(world: ProfileWorld, programs: ProgramArrays, builds: Builds) -> Addresses:
    """Return where everything is in every image built.

    Parameters
    ----------
    world : seed, and how many lines functions have
    programs : their code
    builds : their images; the daemon's build follows the last one

    Examples
    --------
    >>> from sim.profiling.builds import build_builds
    >>> from sim.profiling.register import platform_names
    >>> from models.fleet.inventory import build_jobs, build_machines
    >>> from models.fleet.world import Fleet, Population
    >>> from models.profiling.programs import build_programs
    >>> world = ProfileWorld(3, 86400.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    >>> programs = build_programs(world, build_jobs(world, build_machines(world)), platform_names(world))
    >>> layout = lay_out_images(world, programs, build_builds(world, programs))
    >>> layout.images[layout.daemon], layout.kinds[layout.generated], bool((layout.function_start >= 4096).all())
    ('fleetd', 'generated', True)
    """
    names, files = zip(*DAEMON_FUNCTIONS, strict=True)
    daemon = image_functions(programs.how, world.seed, DAEMON, (names, files))
    code = _with_image(programs.code, daemon, len(programs.images))
    first = np.searchsorted(code.image, np.arange(len(programs.images) + 2))
    instructions = _instructions(code)
    line_bytes = instructions * INSTRUCTION_BYTES
    end = np.cumsum(line_bytes)
    line_offset = end - line_bytes - np.repeat((end - line_bytes)[code.line_start[:-1]], np.diff(code.line_start))
    image_of_build = np.append(builds.image, len(programs.images))
    number = image_of_build.size - 1
    sizes = np.add.reduceat(line_bytes, code.line_start[:-1])
    build_start = np.concatenate([[0], np.cumsum(np.diff(first)[image_of_build])])
    return Addresses(
        code=code,
        images=(*programs.images, DAEMON),
        kinds=(*programs.kinds, "program"),
        first=first,
        image_of_build=image_of_build,
        of_image=np.vstack([builds.of_image, [[number, number]]]),
        build_start=build_start,
        function_start=_function_starts(build_start, first[image_of_build], sizes, code.key),
        line_offset=line_offset,
        instructions=instructions,
    )


def _with_image(code: Functions, more: Functions, image: int) -> Functions:
    """Return the functions of all images so far and of one more."""
    values: dict[str, Any] = {}
    for field in fields(Functions):
        old, new = getattr(code, field.name), getattr(more, field.name)
        values[field.name] = (*old, *new) if isinstance(old, tuple) else np.concatenate([old, new])
    values["image"] = np.concatenate([code.image, np.full(more.count, image)])
    values["line_start"] = np.concatenate([code.line_start, code.line_start[-1] + more.line_start[1:]])
    return Functions(**values)


def _instructions(code: Functions) -> Ints:
    """Return how many instructions each line has: the same in every build."""
    owner = np.repeat(code.key, np.diff(code.line_start))
    return 1 + (mixed(owner, code.line.astype(np.uint64)) % np.uint64(MOST_INSTRUCTIONS)).astype(np.int64)


def _function_starts(build_start: Ints, first: Ints, sizes: Ints, keys: Keys) -> Ints:
    """Return the first address of every function in every build, builds one after the other."""
    counts = np.diff(build_start)
    build = np.repeat(np.arange(counts.size), counts)
    function = np.arange(build.size) - np.repeat(build_start[:-1] - first, counts)
    chance = mixed(mixed(keys[function], np.array(key("layout of images"), np.uint64)), build.astype(np.uint64))
    order = np.lexsort((chance, build))
    gap = 1 + (mixed(chance, np.array(1, np.uint64)) % np.uint64(MOST_GAP)).astype(np.int64)
    room = (-(-sizes[function] // ALIGNMENT) + gap)[order] * ALIGNMENT
    before = np.cumsum(room) - room
    start = np.empty(build.size, np.int64)
    start[order] = FIRST_ADDRESS + before - np.repeat(before[build_start[:-1]], counts)
    return start
