"""`wsc platforms`: the spec sheets that there are, shipped ones and those of a user's own file, picked by name."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias, cast

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import Field, TypeAdapter

from models.errors import WscError
from models.fleet.world import FORBID, Forbid
from models.platforms import PLATFORMS, Cache, InstructionSet, Platform, pooled_bytes
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.findings import Check, FieldFault, build, checked
from scenarios.files.tree import Position, Scalar, ValueNode, merge, parse, without
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import closest
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


Frequency: TypeAlias = Annotated[float, Ge(1e6), Le(1e11)]
Cycles: TypeAlias = Annotated[float, Gt(0), Le(10_000)]
Bytes: TypeAlias = Annotated[float, Ge(1024), Le(1e15)]
Watts: TypeAlias = Annotated[float, Gt(0), Le(100_000)]
Several: TypeAlias = Annotated[int, Ge(1), Le(4096)]
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_OWN = ("name", "extends", "source", "variant_of")
"""What a platform says of itself alone: one that extends it does not inherit these."""


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """One level of data caches, each the same."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    size_bytes: Bytes
    """Size of one cache."""
    latency_cycles: Cycles
    """From load to use, in cycles of the base frequency."""
    cores: Several = 1
    """Cores that share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a file says of one platform."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    extends: str | None = None
    """A platform, shipped or of the same file, whose values hold where none is said."""
    cores: Several
    """Cores of all processors together."""
    threads_per_core: Annotated[int, Ge(1), Le(8)] = 1
    """Hardware threads of a core."""
    sockets: Several = 1
    """Processors."""
    base_frequency_hz: Frequency
    """Clock that the maker guarantees with all cores busy."""
    min_frequency_hz: Frequency | None = None
    """Lowest clock; null: the base frequency."""
    max_frequency_hz: Frequency | None = None
    """Highest clock with all cores busy; null: the base frequency."""
    frequency_step_hz: Frequency = 1.0e8
    """Distance of the clocks between them."""
    caches: Annotated[tuple[CacheLevel, ...], MinLen(1)]
    """Levels of data caches, the innermost first."""
    memory_latency_s: Annotated[float, Gt(0), Le(1e-4)]
    """Latency of an access to idle memory, from load to use."""
    memory_bandwidth_bytes_per_s: Annotated[float, Ge(1e6), Le(1e15)]
    """What all memory channels, or the front-side bus, can move."""
    memory_bytes: Bytes = 64.0 * 2**30
    """Memory."""
    tdp_w: Watts
    """Thermal design power of all processors together."""
    idle_power_w: Watts
    """Power of the whole idle server."""
    core_cpi_factor: Annotated[float, Gt(0), Le(100)]
    """Cycles per instruction without memory delays, relative to Haswell at equal instructions."""
    branch_miss_cycles: Annotated[float, Ge(0), Le(1000)] = 16.0
    """Cycles lost by a mispredicted branch."""
    isa: InstructionSet = "unknown"
    """Instruction set; unknown: wsc predict and wsc select carry no instruction counts to it or from it."""
    variant_of: str = ""
    """The server of which this is a configuration, with parts switched off; empty: itself."""
    source: Annotated[str, Field(max_length=1000)] = ""
    """Where the values come from; empty: the file, and the platform that it extends."""


def read_platforms(file: Path) -> dict[str, Platform]:
    """Return the shipped platforms and those of a YAML file, a map of names to sheets."""
    root, faults = _parsed(file)
    own = _extended(root, faults)
    sheets = {name: _built(name, node, faults) for name, node in own.items()}
    _check({name: sheet for name, sheet in sheets.items() if sheet is not None}, own, faults)
    if faults:
        raise FaultsError(faults)
    return PLATFORMS | {name: _platform(name, sheet, file) for name, sheet in sheets.items() if sheet is not None}


def _parsed(file: Path) -> tuple[ValueNode, list[Fault]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8"
        raise FaultsError([Fault(str(file), 0, 0, "", f"cannot be read: {reason}")]) from None
    root, faults = parse(text, str(file))
    if root is None:
        raise FaultsError(faults)
    if not isinstance(root.value, dict) or not root.value:
        raise FaultsError([*faults, root.place.fault("", "should be a map of platform names to sheets")])
    return root, faults


def _extended(root: ValueNode, faults: list[Fault]) -> dict[str, ValueNode]:
    """Return the tree of each platform, what it extends laid under it; add what is wrong with names."""
    entries = root.value if isinstance(root.value, dict) else {}
    for name, node in entries.items():
        if name in PLATFORMS:
            faults.append(node.key.fault(name, "is the name of a shipped platform: give yours another"))
        elif not _NAME.fullmatch(name):
            faults.append(node.key.fault(name, "should be lower-case letters, digits, '_' and '-'"))
    return {name: _resolved(name, entries, (), faults) for name in entries}


def _resolved(name: str, entries: Mapping[str, ValueNode], above: tuple[str, ...], faults: list[Fault]) -> ValueNode:
    own = entries[name]
    extends = own.child("extends")
    if extends is None:
        return own
    base, chain = extends.value, (*above, name)
    if isinstance(base, str) and base in PLATFORMS:
        return merge(_tree(asdict(PLATFORMS[base]), extends.place), own)
    if isinstance(base, str) and base in entries and base not in chain:
        return merge(without(_resolved(base, entries, chain, faults), _OWN), own)
    others = [other for other in (*PLATFORMS, *entries) if other != name]
    problem = f"should be a platform ({closest(str(extends.plain()), others)})"
    if base in chain:
        problem = f"goes round in a circle: {' -> '.join((*chain, str(base)))}"
    faults.append(extends.place.fault(f"{name}.extends", problem, shown(extends.plain())))
    # On any base, values that are wrong by themselves are told, and not those that are missing.
    return merge(_tree(asdict(next(iter(PLATFORMS.values()))), extends.place), own)


def _tree(value: object, place: Position) -> ValueNode:
    """Return a value as a tree that stands in one place; of a platform's, what another inherits."""
    if isinstance(value, dict):
        inherited = {key: entry for key, entry in value.items() if key not in (*_OWN, "llc_bytes")}
        return ValueNode({key: _tree(entry, place) for key, entry in inherited.items()}, place, place)
    if isinstance(value, list | tuple):
        return ValueNode([_tree(entry, place) for entry in value], place, place)
    return ValueNode(cast(Scalar, value), place, place)


def _built(name: str, node: ValueNode, faults: list[Fault]) -> Sheet | None:
    """Return a sheet without its faulty values, which are added to the faults; None if nothing is left."""
    built = build(_SHEET, node)
    sheet, wrong = built
    told = {fault.field for fault in faults} | {(fault.line, fault.column) for fault in faults}
    for fault in wrong:
        field = f"{name}.{fault.field}".rstrip(".")
        if not told & {field, (fault.line, fault.column)}:
            faults.append(replace(fault, field=field))
    return sheet


def _check(sheets: Mapping[str, Sheet], trees: Mapping[str, ValueNode], faults: list[Fault]) -> None:
    """Add what is wrong between fields that are each right."""
    variants = {name for name, each in (PLATFORMS | dict(sheets)).items() if each.variant_of}
    groundless = {fault.field.removesuffix(".extends") for fault in faults if fault.field.endswith(".extends")}
    grounded = {name: sheet for name, sheet in sheets.items() if not {name, sheet.extends} & groundless}
    for name, sheet in grounded.items():
        told = {(fault.line, fault.column) for fault in faults}
        faulty = {fault.field.removeprefix(f"{name}.") for fault in faults if fault.field.startswith(f"{name}.")}
        findings = [*checked(_CHECKS, sheet, faulty), *_variant(name, sheet, [*PLATFORMS, *trees], variants)]
        for finding in findings:
            place = trees[name].nearest(finding.keys).place
            if (place.line, place.column) not in told:
                faults.append(place.fault(".".join(map(str, (name, *finding.keys))), finding.problem, finding.got))


def _processors(sheet: Sheet) -> Iterator[FieldFault]:
    if sheet.cores % sheet.sockets:
        yield FieldFault(("cores",), f"should be a multiple of sockets = {sheet.sockets}", str(sheet.cores))


def _clocks(sheet: Sheet) -> Iterator[FieldFault]:
    low, base, high = sheet.min_frequency_hz, sheet.base_frequency_hz, sheet.max_frequency_hz
    if low is not None and low > base:
        yield FieldFault(("min_frequency_hz",), f"should be at most base_frequency_hz = {base:g}", f"{low:g}")
    if high is not None and high < base:
        yield FieldFault(("max_frequency_hz",), f"should be at least base_frequency_hz = {base:g}", f"{high:g}")


def _levels(sheet: Sheet) -> Iterator[FieldFault]:
    """Yield levels that are not larger and slower than the level before, or shared by cores that there are not."""
    cores = sheet.cores // sheet.sockets
    for i, level in enumerate(sheet.caches):
        if level.cores > cores:
            problem = f"should be at most {cores}, the cores of a processor"
            yield FieldFault(("caches", i, "cores"), problem, str(level.cores))
    for i, (inner, outer) in enumerate(zip(sheet.caches, sheet.caches[1:], strict=False), 1):
        for field in ("size_bytes", "latency_cycles"):
            least, got = getattr(inner, field), getattr(outer, field)
            if got <= least:
                yield FieldFault(
                    ("caches", i, field), f"should be greater than the {least:g} of the level before", f"{got:g}"
                )


def _memory(sheet: Sheet) -> Iterator[FieldFault]:
    least_s = sheet.caches[-1].latency_cycles / sheet.base_frequency_hz
    if sheet.memory_latency_s <= least_s:
        problem = f"should be greater than that of the last cache, {least_s:.3g}"
        yield FieldFault(("memory_latency_s",), problem, f"{sheet.memory_latency_s:g}")


def _variant(name: str, sheet: Sheet, known: Sequence[str], variants: Set[str]) -> Iterator[FieldFault]:
    other, others = sheet.variant_of, [candidate for candidate in known if candidate != name]
    if other and other not in others:
        yield FieldFault(("variant_of",), f"should be another platform ({closest(other, others)})", shown(other))
    elif other in variants:
        yield FieldFault(("variant_of",), "should be a whole server, not a configuration of one", shown(other))


def _platform(name: str, sheet: Sheet, file: Path) -> Platform:
    """Return the platform of a sheet that is right."""
    values = {field.name: getattr(sheet, field.name) for field in fields(Sheet) if field.name != "extends"}
    caches = tuple(Cache(level.size_bytes, level.latency_cycles, level.cores) for level in sheet.caches)
    made_of = {
        "name": name,
        "caches": caches,
        "llc_bytes": sheet.sockets * pooled_bytes(caches[-1], sheet.cores // sheet.sockets),
        "min_frequency_hz": sheet.min_frequency_hz or sheet.base_frequency_hz,
        "max_frequency_hz": sheet.max_frequency_hz or sheet.base_frequency_hz,
        "source": sheet.source or f"{file}" + (f", from {sheet.extends}" if sheet.extends else ""),
    }
    return Platform(**values | made_of)


_SHEET: TypeAdapter[Sheet] = TypeAdapter(Sheet)
_CHECKS: Mapping[Check[Sheet], tuple[str, ...]] = {
    _processors: ("cores", "sockets"),
    _clocks: ("min_frequency_hz", "base_frequency_hz", "max_frequency_hz"),
    _levels: ("caches", "cores", "sockets"),
    _memory: ("caches", "base_frequency_hz", "memory_latency_s"),
}
