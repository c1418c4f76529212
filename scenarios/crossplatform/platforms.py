"""`wsc platforms`: the spec sheets that there are, and platforms picked by their names."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.errors import WscError
from models.platforms import PLATFORMS, Platform
from scenarios.views.numbers import closest


class PlatformError(WscError):
    """Names that are no platforms, or are there twice. `names` has them; `str()` has one a line."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("\n".join(faults.values()))
        self.names = tuple(faults)


def choose(names: Sequence[str], among: Mapping[str, Platform] = PLATFORMS) -> list[Platform]:
    """Return the platforms of these names, in their order.

    Raises
    ------
    PlatformError
        If names are not known, with the nearest that are, or are there twice.

    Examples
    --------
    >>> [platform.vcpus for platform in choose(["piii", "xeon_2h_2c_2p"])]
    [2, 8]
    >>> choose(["pii"])
    Traceback (most recent call last):
    scenarios.crossplatform.platforms.PlatformError: there is no platform "pii" (did you mean piii?)
    """
    return choose_each([names], among)[0]


def choose_each(groups: Sequence[Sequence[str]], among: Mapping[str, Platform] = PLATFORMS) -> list[list[Platform]]:
    """Return the platforms of several groups of names; a name may be in more than one.

    Raises
    ------
    PlatformError
        With all that is wrong in any group, as of `choose`.

    Examples
    --------
    >>> [[one.name for one in group] for group in choose_each([["piii"], ["pres", "piii"]])]
    [['piii'], ['pres', 'piii']]
    >>> choose_each([["pii"], ["press"]])
    Traceback (most recent call last):
    scenarios.crossplatform.platforms.PlatformError: there is no platform "pii" (did you mean piii?)
    there is no platform "press" (did you mean pres?)
    """
    faults = dict[str, str]()
    for names in groups:
        faults |= {name: f"platform {json.dumps(name)} is named twice" for name in names if names.count(name) > 1}
        unknown = [name for name in names if name not in among]
        faults |= {name: f"there is no platform {json.dumps(name)} ({closest(name, among)})" for name in unknown}
    if faults:
        raise PlatformError(faults)
    return [[among[name] for name in names] for names in groups]


def platforms(names: Sequence[str] = (), file: Path | None = None) -> list[dict[str, Any]]:
    """Return what `wsc platforms` says: the sheets of these names, of all platforms if there are none.

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
    >>> [(one["name"], one["vcpus"], one["caches"][1]["level"]) for one in platforms(["pd4"])]
    [('pd4', 8, 'L2')]
    """
    among = available(file)
    return [_payload(platform) for platform in (choose(names, among) if names else among.values())]


def available(file: Path | None = None) -> Mapping[str, Platform]:
    """Return the shipped platforms and those of a user's file, if there is one.

    Raises
    ------
    FaultsError
        Everything that is wrong with the file.

    Examples
    --------
    >>> list(available())[:3]
    ['piii', 'pres', 'pd4']
    """
    if file is None:
        return PLATFORMS
    from scenarios.crossplatform.platform_files import read_platforms

    return read_platforms(file)


def show_platforms(payload: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print sheets: one with all that it says, several as a table.

    Examples
    --------
    >>> show_platforms(platforms(["piii", "rome_7742"]), Console(width=100))
    platform   cores CPUs  GHz       caches memory, ns  GB/s TDP, W idle busy
    ─────────────────────────────────────────────────────────────────────────
    piii       2 × 1    2  1.1     32K 128K        110   0.8     66   75  131
    rome_7742 1 × 64  128 2.25 32K 512K 16M        104 204.8    225   95  286
    """
    if len(payload) == 1:
        _show_sheet(payload[0], console)
        return
    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for number, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="right" if number else "left", no_wrap=not number)
    for one in payload:
        table.add_row(*_row(one))
    console.print(table)


_HEADINGS = ("platform", "cores", "CPUs", "GHz", "caches", "memory, ns", "GB/s", "TDP, W", "idle", "busy")


def _payload(platform: Platform) -> dict[str, Any]:
    """Return all that a sheet says, derived values included."""
    said = {key: value for key, value in asdict(platform).items() if key not in {"caches", "source"}}
    levels = [{"level": f"L{number}", **asdict(cache)} for number, cache in enumerate(platform.caches, 1)]
    return {
        "kind": "platform",
        **said,
        "vcpus": platform.vcpus,
        "caches": levels,
        "peak_power_w": platform.peak_power_w,
        "instruction_cpi": platform.instruction_cpi,
        "source": platform.source,
    }


def _row(one: Mapping[str, Any]) -> list[str]:
    caches = " ".join(_size(level["size_bytes"]).replace(" ", "").removesuffix("iB") for level in one["caches"])
    return [
        one["name"],
        f"{one['sockets']} × {one['cores'] // one['sockets']}",
        f"{one['vcpus']}",
        f"{one['base_frequency_hz'] / 1e9:g}",
        caches,
        f"{one['memory_latency_s'] * 1e9:.0f}",
        f"{one['memory_bandwidth_bytes_per_s'] / 1e9:.4g}",
        *(f"{one[power]:.0f}" for power in ("tdp_w", "idle_power_w", "peak_power_w")),
    ]


def _show_sheet(one: Mapping[str, Any], console: Console) -> None:
    """Print all that one sheet says, with units."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for what, value in _lines(one):
        table.add_row(what, escape(value))
    console.print(one["name"] + (f", a configuration of {one['variant_of']}" if one["variant_of"] else ""))
    console.print(table)


def _lines(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    base, least, most = (f"{one[f'{which}_frequency_hz'] / 1e9:g}" for which in ("base", "min", "max"))
    yield "cores", f"{one['sockets']} × {one['cores'] // one['sockets']} (processors × cores of each)"
    yield "logical CPUs", f"{one['vcpus']}, {one['threads_per_core']} a core"
    yield "clock", f"{base} GHz" + (f", with turbo {least} to {most} GHz" if least != most else "")
    for level in one["caches"]:
        shared = f"; {level['cores']} cores share one" if level["cores"] > 1 else ""
        yield f"{level['level']} cache", f"{_size(level['size_bytes'])}, {level['latency_cycles']:g} cycles{shared}"
    yield "memory", _memory(one)
    yield (
        "instruction CPI",
        f"{one['instruction_cpi']:.3g} without memory delays: {one['core_cpi_factor']:g} of Haswell's",
    )
    yield "instruction set", one["isa"]
    yield "branch miss", f"{one['branch_miss_cycles']:g} cycles"
    yield "power", f"{one['idle_power_w']:g} W idle, {one['peak_power_w']:g} W busy; TDP {one['tdp_w']:g} W"
    yield "source", one["source"]


def _memory(one: Mapping[str, Any]) -> str:
    latency_s, bandwidth = one["memory_latency_s"], one["memory_bandwidth_bytes_per_s"]
    cycles = latency_s * one["base_frequency_hz"]
    return f"{_size(one['memory_bytes'])}, {latency_s * 1e9:g} ns = {cycles:.0f} cycles, {bandwidth / 1e9:g} GB/s"


def _size(of_bytes: float) -> str:
    """Return a size in the largest binary unit that it fills."""
    power = min(max(int(math.log2(of_bytes) // 10), 0), 4)
    return f"{of_bytes / 2 ** (10 * power):g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
