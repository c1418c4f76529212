"""Images: the code that programs are linked from, and how much of each program's instructions lies in it."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.profiling import world as profiles
from models.profiling.function_names import handlers_of, library_names, own_names
from models.profiling.functions import LIBRARY_CPI, Functions, image_functions, levelled
from models.randomness import stream, streams

KERNEL, MODULE = 0, 1
"""Images that every program's instructions may be in."""
GENERATED = "[generated]"
"""Memory with code made at run time: no image, one function that nobody can name."""
UNKNOWN = "[unknown]"
"""What nobody can name is called."""
KERNEL_LOG_SD, MIX_LOG_SD, KERNEL_MIX_LOG_SD = 0.35, 0.25, 0.5
"""Spread between programs of the kernel's share, of the mix within a library, and of that within the kernel."""
MOST_SHARED = 0.8
"""Most of a program's instructions that libraries and the kernel may have together."""
GENERATED_SHARE = 0.4
"""Share of the instructions of a program's own code that run in generated code, if it has any."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedImage:
    """An image that many programs run: its code, the mix of its functions, and its share in each program."""

    image: str
    kind: str
    code: Functions
    mix: Floats
    """(J, functions) shares within it, in each program."""
    share: Floats
    """(J,) share of the program's instructions, 0: not linked."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnImage:
    """A program's own code: functions, shares of the instructions in it, generated code's share, other profiles."""

    code: Functions
    mix: Floats
    generated: float
    allocation: Floats
    lock: Floats


def shared_images(how: profiles.Programs, seed: int, names: tuple[str, ...]) -> list[SharedImage]:
    """Return kernel, module and libraries, their shares cut where together they would leave a program too little.

    Parameters
    ----------
    how : libraries, and the kernel's functions and share
    seed : of the draws
    names : of the J programs
    """
    in_module = how.kernel_functions // 8
    share = np.minimum(how.kernel_share * _log_normal(seed, "kernel", names, KERNEL_LOG_SD), 0.6)
    kernel = _library(how, seed, ("kernel", "kernel", how.kernel_functions - in_module), names)
    images = [SharedImage(*kernel, share * (0.9 if in_module else 1.0))]
    module = _library(how, seed, ("nic", "module", max(1, in_module)), names)
    images.append(SharedImage(*module, share * (0.1 if in_module else 0.0)))
    for library in how.libraries:
        image = _library(how, seed, (library.name, "library", library.functions), names, library.floating_point)
        draws = [rng.random() for rng in streams(seed, f"links to {library.name}", names)]
        linked = np.array(draws) < library.linked_share
        spread = _log_normal(seed, library.name, names, library.log_sd)
        images.append(SharedImage(*image, np.where(linked, library.instruction_share * spread, 0.0)))
    cut = np.minimum(1.0, MOST_SHARED / np.maximum(np.sum([part.share for part in images], axis=0), 1e-300))
    return [SharedImage(part.image, part.kind, part.code, part.mix, part.share * cut) for part in images]


def _library(
    how: profiles.Programs,
    seed: int,
    what: tuple[str, str, int],
    names: tuple[str, ...],
    floating_point: float = 0.0,
) -> tuple[str, str, Functions, Floats]:
    """Return image, kind, code and mix in each program of what is named, of a kind, and has so many functions."""
    image, kind, count = what
    usual = np.arange(1.0, count + 1) ** -how.zipf
    sd = MIX_LOG_SD if kind == "library" else KERNEL_MIX_LOG_SD
    drawn = [rng.standard_normal(count) for rng in streams(seed, f"mix within {image}", names)]
    mix = usual * np.exp(sd * np.reshape(drawn, (len(names), count)))
    code = image_functions(how, seed, image, library_names(image, count), floating_point)
    return image, kind, levelled(code, usual / usual.sum(), LIBRARY_CPI), mix / mix.sum(axis=1, keepdims=True)


def _log_normal(seed: int, image: str, names: tuple[str, ...], sd: float) -> Floats:
    """Return (J,) factors, log-normal of mean 1."""
    drawn = np.array([rng.standard_normal() for rng in streams(seed, f"share of {image}", names)])
    return np.asarray(np.exp(sd * drawn - 0.5 * sd * sd))


def own_image(how: profiles.Programs, seed: int, name: str) -> OwnImage:
    """Return a program's own code: `main` and handlers run little themselves, the others by Zipf's law.

    Parameters
    ----------
    how : number of functions and their law
    seed : of the draws, which belong to the program's name
    name : the program's
    """
    rng = stream(seed, f"program {name}")
    count = int(np.clip(round(how.functions * float(np.exp(how.functions_log_sd * rng.standard_normal()))), 3, 20000))
    framework = 1 + handlers_of(count)
    order = np.concatenate(
        [[count], np.arange(count - 1, count - framework, -1), 1 + rng.permutation(count - framework)]
    )
    mix = order.astype(np.float64) ** -how.zipf
    numeric = 0.35 if rng.random() < 0.1 else 0.05
    generated = GENERATED_SHARE if rng.random() < how.jit_share else 0.0
    code = image_functions(how, seed, f"program {name}", own_names(name, count), numeric)
    sites, waits = rng.random((2, count))
    heavy, contended = rng.standard_normal((2, count))
    return OwnImage(
        code=levelled(code, mix / mix.sum()),
        mix=mix / mix.sum(),
        generated=generated,
        allocation=_few(sites, np.exp(1.2 * heavy), 0.25),
        lock=_few(waits, np.exp(1.5 * contended), 0.08),
    )


def _few(uniform: Floats, weight: Floats, share: float) -> Floats:
    """Return weights, sum 1, that lie on a share of the entries, at least on one."""
    chosen = np.where(uniform <= max(share, float(uniform.min())), weight, 0.0)
    return np.asarray(chosen / chosen.sum())


def generated_code(how: profiles.Programs, seed: int) -> Functions:
    """Return the one function that stands for all code that is made at run time.

    Parameters
    ----------
    how : spreads between functions and number of lines
    seed : of the draws
    """
    code = image_functions(how, seed, GENERATED, ((UNKNOWN,), ("",)))
    return levelled(code, np.ones(1))
