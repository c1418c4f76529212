"""Functions: what an instruction of each costs in cycles, misses and mispredictions, and which lines it stands on."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.platforms import PLATFORMS, REFERENCE_CORE_CPI, Platform
from models.profiling.world import Programs
from models.randomness import stream

BASE_CPI = 0.55
"""Cycles of an instruction that finds its data in the first level and its branches predicted, at the median."""
L2_HITS, LLC_HITS, MISPREDICTIONS = 0.02, 0.006, 0.004
"""Per instruction at the median: first-level misses that hit the second level, second-level misses that hit the last,
and mispredicted branches; the size that Kanev et al. (2015, section 5) report of server code."""
EXPOSED_L2, EXPOSED_LLC = 0.3, 0.6
"""Part of a hit's latency that the core cannot hide."""
REFERENCE_L1_BYTES, REFERENCE_L2_BYTES = 32.0 * 2**10, 256.0 * 2**10
"""Cache sizes at which hit rates are quoted; misses go as one over the root of the size."""
OVERLAP = 2.25
"""Misses of a function that overlap, at the median."""
LIBRARY_CPI = 1.15
"""Core CPI of shared code relative to the median server code: tight loops, but mispredicted branches."""


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """Arrays over functions: what they are called, where they stand and what they cost.

    Rates are per instruction. `line` and `line_weight` (instructions, sum 1 in each function) are those of function f
    from `line_start[f]` to `line_start[f + 1]`. `key` belongs to image and name: noise does not depend on numbers.
    """

    name: tuple[str, ...]
    file: tuple[str, ...]
    image: Ints
    key: NDArray[np.uint64]
    function_line: Ints
    core_base: Floats
    l2_hits: Floats
    llc_hits: Floats
    mispredictions: Floats
    miss_intensity: Floats
    overlap: Floats
    floating_point: Floats
    line_start: Ints
    line: Ints
    line_weight: Floats

    @property
    def count(self) -> int:
        """Number of functions."""
        return len(self.name)


@dataclass(frozen=True, slots=True)
class Levels:
    """What a core sees of the caches: sizes of the first two levels, latencies of a hit in the second and in the last.

    Examples
    --------
    >>> levels(PLATFORMS["skylake_6148"]).llc_cycles
    43.0
    """

    l1_bytes: float
    l2_bytes: float
    l2_cycles: float
    llc_cycles: float


def levels(platform: Platform) -> Levels:
    """Return a platform's caches as cores see them; what no spec sheet says is as on Haswell.

    Where there are two levels, the second is the last, and nothing hits between them.
    """
    caches = platform.caches or PLATFORMS["haswell_2698v3"].caches
    last = float(caches[-1].latency_cycles) if len(caches) > 2 else 0.0
    return Levels(caches[0].size_bytes, caches[1].size_bytes, float(caches[1].latency_cycles), last)


def hit_rates(functions: Functions, platform: Platform) -> tuple[Floats, Floats]:
    """Return hits of the second and of the last level per instruction of each function on a platform.

    Misses go as one over the root of a cache's size (Chow 1974), so a larger cache hands fewer on.

    Parameters
    ----------
    functions : G functions
    platform : its caches count

    Returns
    -------
    two (G,) arrays, hits per instruction
    """
    hierarchy = levels(platform)
    first, second = np.sqrt(REFERENCE_L1_BYTES / hierarchy.l1_bytes), np.sqrt(REFERENCE_L2_BYTES / hierarchy.l2_bytes)
    return functions.l2_hits * first, functions.llc_hits * (second if hierarchy.llc_cycles else 0.0)


def core_cpi(functions: Functions, platform: Platform) -> Floats:
    """Return cycles per instruction of each function on a platform that waits for no memory.

    The stack is the base, hits of the second and the last level as far as the core cannot hide them, and mispredicted
    branches (Eyerman et al. 2006).

    Parameters
    ----------
    functions : G functions
    platform : its core, caches and pipeline

    Returns
    -------
    (G,) array, cycles per instruction
    """
    hierarchy = levels(platform)
    l2, llc = hit_rates(functions, platform)
    caches = EXPOSED_L2 * hierarchy.l2_cycles * l2 + EXPOSED_LLC * hierarchy.llc_cycles * llc
    branches = functions.mispredictions * platform.branch_miss_cycles
    return np.asarray(functions.core_base * platform.core_cpi_factor + caches + branches)


def image_functions(
    how: Programs, seed: int, image: str, named: tuple[Sequence[str], Sequence[str]], floating_point: float = 0.05
) -> Functions:
    """Return the functions of one image, drawn from a stream of its own; their `image` is 0.

    Parameters
    ----------
    how : spreads between functions and number of lines
    seed, image : of the draws
    named : names and files of the functions; those of one file stand together
    floating_point : mean share of floating-point instructions

    Examples
    --------
    >>> code = image_functions(Programs(lines=2), 1, "libz", (["inflate", "deflate"], ["a.c", "a.c"]))
    >>> code.function_line[0], bool(code.function_line[1] > code.line[code.line_start[1] - 1])
    (np.int64(20), True)
    """
    names, files = named
    count, rng = len(names), stream(seed, f"functions of {image}")
    cost, dense, own, depth, extent = rng.standard_normal((5, count))
    factor = np.exp(how.core_cpi_log_sd * cost - 0.5 * how.core_cpi_log_sd**2)
    sd = how.misses_log_sd
    misses = np.exp(sd * dense - 0.5 * sd**2)
    near = np.exp(0.5 * sd * dense + 0.5 * sd * own)
    share = np.clip(floating_point * np.exp(0.6 * rng.standard_normal(count)), 0.0, 0.95)
    start, offset, weight = _lines(how, rng, extent)
    span = offset[start[1:] - 1] + 3
    line = _first_lines(files, span)
    return Functions(
        name=tuple(names),
        file=tuple(files),
        image=np.zeros(count, np.int64),
        key=np.array([_key(f"{image} {name}") for name in names], np.uint64),
        function_line=line,
        core_base=BASE_CPI * factor,
        l2_hits=L2_HITS * near,
        llc_hits=LLC_HITS * near,
        mispredictions=MISPREDICTIONS * factor * np.exp(0.4 * own),
        miss_intensity=misses,
        overlap=1.0 + (OVERLAP - 1.0) * np.exp(0.3 * depth),
        floating_point=share,
        line_start=start,
        line=np.repeat(line, np.diff(start)) + offset,
        line_weight=weight,
    )


def levelled(functions: Functions, weight: Floats, relative_cpi: float = 1.0) -> Functions:
    """Return functions scaled so that by these weights they cost on the reference what such code costs.

    How an image departs from that is its jobs' matter, whose totals the fleet gives; functions depart within it.

    Parameters
    ----------
    functions : of one image
    weight : (G,) shares of its instructions, sum 1
    relative_cpi : core CPI relative to the median of server code

    Examples
    --------
    >>> code = image_functions(Programs(), 1, "libz", (["inflate", "deflate"], ["a.c", "a.c"]))
    >>> flat = levelled(code, np.array([0.5, 0.5]), LIBRARY_CPI)
    >>> round(float(core_cpi(flat, PLATFORMS["haswell_2698v3"]).mean() / REFERENCE_CORE_CPI), 9)
    1.15
    >>> round(float(flat.miss_intensity.mean()), 9)
    1.0
    """
    scale = relative_cpi * REFERENCE_CORE_CPI / (weight * core_cpi(functions, PLATFORMS["haswell_2698v3"])).sum()
    values = {field.name: getattr(functions, field.name) for field in fields(Functions)}
    for rate in ("core_base", "l2_hits", "llc_hits", "mispredictions"):
        values[rate] = values[rate] * scale
    values["miss_intensity"] = values["miss_intensity"] / (weight * functions.miss_intensity).sum()
    return Functions(**values)


def together(parts: Sequence[Functions]) -> Functions:
    """Return the functions of several images, in their order; `image` counts the images."""
    values: dict[str, Any] = {}
    for field in fields(Functions):
        columns = [getattr(part, field.name) for part in parts]
        texts = field.name in {"name", "file"}
        values[field.name] = tuple(text for column in columns for text in column) if texts else np.concatenate(columns)
    values["image"] = np.repeat(np.arange(len(parts)), [part.count for part in parts])
    lines = np.concatenate([np.diff(part.line_start) for part in parts])
    values["line_start"] = np.concatenate([[0], np.cumsum(lines)])
    return Functions(**values)


def _lines(how: Programs, rng: np.random.Generator, extent: Floats) -> tuple[Ints, Ints, Floats]:
    """Return first line of code of each function, every line's distance from the function's first, and its weight."""
    count = np.clip(np.rint(how.lines * np.exp(0.5 * extent)), 1, 20 * how.lines).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(count)])
    step = rng.integers(1, 4, int(start[-1]))
    run = np.cumsum(step)
    offset = run - np.repeat(run[start[:-1]] - step[start[:-1]], count)
    weight = np.exp(1.2 * rng.standard_normal(int(start[-1])))
    return start, offset, weight / np.repeat(np.add.reduceat(weight, start[:-1]), count)


def _first_lines(files: Sequence[str], span: Ints) -> Ints:
    """Return the line on which each function begins: those of one file stand one below the other."""
    below: dict[str, int] = {}
    first = np.zeros(len(files), np.int64)
    for i, file in enumerate(files):
        first[i] = below.get(file, 20)
        below[file] = int(first[i] + span[i])
    return first


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
