"""`wsc platforms`: the spec sheets that there are, shipped ones and those of a user's own file, picked by name."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import WscError
from models.platforms import PLATFORMS, Platform
from scenarios.files.own_platforms import read_platforms
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import closest, listed, plural
from scenarios.views.section import Says, Section, table

if TYPE_CHECKING:
    import pandas as pd


class PlatformError(WscError):
    """Names that are no platforms, or are there twice. `names` has them; `str()` has one a line."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("\n".join(faults.values()))
        self.names = tuple(faults)


def choose(names: Sequence[str], among: Mapping[str, Platform] = PLATFORMS) -> list[Platform]:
    """Return the platforms of these names, in their order."""
    return choose_each([names], among)[0]


def choose_each(groups: Sequence[Sequence[str]], among: Mapping[str, Platform] = PLATFORMS) -> list[list[Platform]]:
    """Return the platforms of several groups of names; a name may be in more than one."""
    faults = dict[str, str]()
    for names in groups:
        faults |= {name: f"platform {json.dumps(name)} is named twice" for name in names if names.count(name) > 1}
        unknown = [name for name in names if name not in among]
        faults |= {name: f"there is no platform {json.dumps(name)} ({closest(name, among)})" for name in unknown}
    if faults:
        raise PlatformError(faults)
    return [[among[name] for name in names] for names in groups]


@dataclass(frozen=True, slots=True, repr=False)
class Sheets(Conclusion):
    """Spec sheets of platforms: ``wsc platforms``."""

    platforms: tuple[Platform, ...]

    def brief(self) -> str:
        """Return what a platform has, or the names of several."""
        if len(self.platforms) != 1:
            return f"{plural(len(self.platforms), 'platform')}: {listed(platform.name for platform in self.platforms)}"
        (sheet,) = self.platforms
        return f"{sheet.name}: {sheet.vcpus} logical CPUs, {sheet.base_frequency_hz / 1e9:g} GHz, TDP {sheet.tdp_w:g} W"

    def section(self) -> Section:
        """Return one sheet with all that it says, several as a table."""
        if len(self.platforms) != 1:
            return Section("", (table(_HEADINGS, [_row(platform) for platform in self.platforms]),))
        (platform,) = self.platforms
        name = platform.name + (f", a configuration of {platform.variant_of}" if platform.variant_of else "")
        return Section("", (Says(name), table((), [*_lines(platform)], words=2)))

    def payload(self) -> list[Payload]:
        """Return a list of sheets, derived values included."""
        return [_payload(platform) for platform in self.platforms]

    def frame(self) -> "pd.DataFrame":
        """Return a row a platform, without its caches but the size of the last."""
        import pandas as pd

        return pd.DataFrame(self.payload()).drop(columns=["kind", "caches"])


def platforms(names: Sequence[str] = (), file: Path | None = None) -> Sheets:
    """Return the sheets of these names, of all platforms if there are none.

    Parameters
    ----------
    file : a user's own platforms, to be there beside the shipped ones

    Raises
    ------
    PlatformError
        If a name is not known or is there twice.
    FaultsError
        Everything that is wrong with the file.

    Examples
    --------
    >>> [(sheet.name, sheet.vcpus) for sheet in platforms(["pd4"]).platforms]
    [('pd4', 8)]
    """
    among = available(file)
    return Sheets(tuple(choose(names, among) if names else among.values()))


def available(file: Path | None = None) -> Mapping[str, Platform]:
    """Return the shipped platforms and those of a user's file, if there is one."""
    if file is None:
        return PLATFORMS
    return read_platforms(file)


_HEADINGS = ("platform", "cores", "CPUs", "GHz", "caches", "RAM, ns", "GB/s", "TDP, W", "idle", "busy")


def _payload(platform: Platform) -> Payload:
    """Return all that a sheet says, derived values included."""
    values = {key: value for key, value in asdict(platform).items() if key not in {"caches", "source"}}
    levels = [{"level": f"L{number}", **asdict(cache)} for number, cache in enumerate(platform.caches, 1)]
    return {
        "kind": "platform",
        **values,
        "vcpus": platform.vcpus,
        "caches": levels,
        "peak_power_w": platform.peak_power_w,
        "instruction_cpi": platform.instruction_cpi,
        "source": platform.source,
    }


def _row(platform: Platform) -> list[str]:
    caches = " ".join(_size(cache.size_bytes).replace(" ", "").removesuffix("iB") for cache in platform.caches)
    return [
        platform.name,
        f"{platform.sockets} × {platform.cores // platform.sockets}",
        f"{platform.vcpus}",
        f"{platform.base_frequency_hz / 1e9:g}",
        caches,
        f"{platform.memory_latency_s * 1e9:.0f}",
        f"{platform.memory_bandwidth_bytes_per_s / 1e9:.4g}",
        *(f"{power:.0f}" for power in (platform.tdp_w, platform.idle_power_w, platform.peak_power_w)),
    ]


def _lines(platform: Platform) -> Iterator[tuple[str, str]]:
    """Yield all that one sheet says, with units."""
    frequencies = (platform.base_frequency_hz, platform.min_frequency_hz, platform.max_frequency_hz)
    base, least, most = (f"{frequency / 1e9:g}" for frequency in frequencies)
    yield "cores", f"{platform.sockets} × {platform.cores // platform.sockets} (processors × cores of each)"
    yield "logical CPUs", f"{platform.vcpus}, {platform.threads_per_core} a core"
    yield "clock", f"{base} GHz" + (f", with turbo {least} to {most} GHz" if least != most else "")
    for level, cache in enumerate(platform.caches, 1):
        shared = f"; {cache.cores} cores share one" if cache.cores > 1 else ""
        yield f"L{level} cache", f"{_size(cache.size_bytes)}, {cache.latency_cycles:g} cycles{shared}"
    yield "memory", _memory_line(platform)
    yield (
        "instruction CPI",
        f"{platform.instruction_cpi:.3g} without memory delays: {platform.core_cpi_factor:g} of Haswell's",
    )
    yield "instruction set", platform.isa
    yield "branch miss", f"{platform.branch_miss_cycles:g} cycles"
    yield "power", f"{platform.idle_power_w:g} W idle, {platform.peak_power_w:g} W busy; TDP {platform.tdp_w:g} W"
    yield "source", platform.source


def _memory_line(platform: Platform) -> str:
    latency_s, bandwidth = platform.memory_latency_s, platform.memory_bandwidth_bytes_per_s
    cycles = latency_s * platform.base_frequency_hz
    return f"{_size(platform.memory_bytes)}, {latency_s * 1e9:g} ns = {cycles:.0f} cycles, {bandwidth / 1e9:g} GB/s"


def _size(of_bytes: float) -> str:
    """Return a size in the largest binary unit that it fills."""
    power = min(max(int(math.log2(of_bytes) // 10), 0), 4)
    return f"{of_bytes / 2 ** (10 * power):g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
