"""A user's own platforms: spec sheets in a YAML file, checked as scenario files are, beside the shipped ones."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, ClassVar, TypeAlias, cast

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import Field, TypeAdapter

from models.fleet.world import FORBID, Forbid
from models.platforms import PLATFORMS, Cache, InstructionSet, Platform, pooled_bytes
from scenarios.files.building import build
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.findings import Check, Finding, checked
from scenarios.files.reader import parse
from scenarios.files.tree import Node, Place, Scalar, merge, without
from scenarios.views.numbers import closest

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
    """Return the shipped platforms and those of a YAML file, a map of names to sheets.

    Raises
    ------
    FaultsError
        Everything that is wrong with the file, with line and column: unknown keys, values out of bounds or of another
        type, fields that contradict each other, a name that is a shipped platform's.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.yaml"
    ...     _ = file.write_text("half_genoa: {extends: genoa_9654, cores: 48, tdp_w: 240}")
    ...     platforms = read_platforms(file)
    >>> platforms["half_genoa"].llc_bytes / 2**20, len(platforms) - len(PLATFORMS)
    (192.0, 1)
    """
    root, faults = _parsed(file)
    own = _extended(root, faults)
    sheets = {name: _built(name, node, faults) for name, node in own.items()}
    _check({name: sheet for name, sheet in sheets.items() if sheet is not None}, own, faults)
    if faults:
        raise FaultsError(faults)
    return PLATFORMS | {name: _platform(name, sheet, file) for name, sheet in sheets.items() if sheet is not None}


def _parsed(file: Path) -> tuple[Node, list[Fault]]:
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


def _extended(root: Node, faults: list[Fault]) -> dict[str, Node]:
    """Return the tree of each platform, what it extends laid under it; add what is wrong with names."""
    entries = root.value if isinstance(root.value, dict) else {}
    for name, node in entries.items():
        if name in PLATFORMS:
            faults.append(node.key.fault(name, "is the name of a shipped platform: give yours another"))
        elif not _NAME.fullmatch(name):
            faults.append(node.key.fault(name, "should be lower-case letters, digits, '_' and '-'"))
    return {name: _resolved(name, entries, (), faults) for name in entries}


def _resolved(name: str, entries: Mapping[str, Node], above: tuple[str, ...], faults: list[Fault]) -> Node:
    own = entries[name]
    said = own.child("extends")
    if said is None:
        return own
    base, chain = said.value, (*above, name)
    if isinstance(base, str) and base in PLATFORMS:
        return merge(_tree(asdict(PLATFORMS[base]), said.place), own)
    if isinstance(base, str) and base in entries and base not in chain:
        return merge(without(_resolved(base, entries, chain, faults), _OWN), own)
    problem = (
        f"should be a platform ({closest(str(said.plain()), [one for one in (*PLATFORMS, *entries) if one != name])})"
    )
    if base in chain:
        problem = f"goes round in a circle: {' -> '.join((*chain, str(base)))}"
    faults.append(said.place.fault(f"{name}.extends", problem, shown(said.plain())))
    # On any base, values that are wrong by themselves are told, and not those that are missing.
    return merge(_tree(asdict(next(iter(PLATFORMS.values()))), said.place), own)


def _tree(value: object, place: Place) -> Node:
    """Return a value as a tree that stands in one place; of a platform's, what another inherits."""
    if isinstance(value, dict):
        kept = {key: entry for key, entry in value.items() if key not in (*_OWN, "llc_bytes")}
        return Node({key: _tree(entry, place) for key, entry in kept.items()}, place, place)
    if isinstance(value, list | tuple):
        return Node([_tree(entry, place) for entry in value], place, place)
    return Node(cast(Scalar, value), place, place)


def _built(name: str, node: Node, faults: list[Fault]) -> Sheet | None:
    """Return a sheet without its faulty values, which are added to the faults; None if nothing is left."""
    built = build(_SHEET, node)
    sheet, wrong = built
    told = {fault.field for fault in faults} | {(fault.line, fault.column) for fault in faults}
    for fault in wrong:
        field = f"{name}.{fault.field}".rstrip(".")
        if not told & {field, (fault.line, fault.column)}:
            faults.append(replace(fault, field=field))
    return sheet


def _check(sheets: Mapping[str, Sheet], trees: Mapping[str, Node], faults: list[Fault]) -> None:
    """Add what is wrong between fields that are each right."""
    variants = {name for name, each in (PLATFORMS | dict(sheets)).items() if each.variant_of}
    groundless = {fault.field.removesuffix(".extends") for fault in faults if fault.field.endswith(".extends")}
    grounded = {name: sheet for name, sheet in sheets.items() if not {name, sheet.extends} & groundless}
    for name, sheet in grounded.items():
        told = {(fault.line, fault.column) for fault in faults}
        faulty = {fault.field.removeprefix(f"{name}.") for fault in faults if fault.field.startswith(f"{name}.")}
        found = [*checked(_CHECKS, sheet, faulty), *_variant(name, sheet, [*PLATFORMS, *trees], variants)]
        for one in found:
            place = trees[name].nearest(one.keys).place
            if (place.line, place.column) not in told:
                faults.append(place.fault(".".join(map(str, (name, *one.keys))), one.problem, one.got))


def _processors(sheet: Sheet) -> Iterator[Finding]:
    if sheet.cores % sheet.sockets:
        yield Finding(("cores",), f"should be a multiple of sockets = {sheet.sockets}", str(sheet.cores))


def _clocks(sheet: Sheet) -> Iterator[Finding]:
    low, base, high = sheet.min_frequency_hz, sheet.base_frequency_hz, sheet.max_frequency_hz
    if low is not None and low > base:
        yield Finding(("min_frequency_hz",), f"should be at most base_frequency_hz = {base:g}", f"{low:g}")
    if high is not None and high < base:
        yield Finding(("max_frequency_hz",), f"should be at least base_frequency_hz = {base:g}", f"{high:g}")


def _levels(sheet: Sheet) -> Iterator[Finding]:
    """Yield levels that are not larger and slower than the level before, or shared by cores that there are not."""
    each = sheet.cores // sheet.sockets
    for i, level in enumerate(sheet.caches):
        if level.cores > each:
            problem = f"should be at most {each}, the cores of a processor"
            yield Finding(("caches", i, "cores"), problem, str(level.cores))
    for i, (inner, outer) in enumerate(zip(sheet.caches, sheet.caches[1:], strict=False), 1):
        for field in ("size_bytes", "latency_cycles"):
            least, got = getattr(inner, field), getattr(outer, field)
            if got <= least:
                yield Finding(
                    ("caches", i, field), f"should be greater than the {least:g} of the level before", f"{got:g}"
                )


def _memory(sheet: Sheet) -> Iterator[Finding]:
    least_s = sheet.caches[-1].latency_cycles / sheet.base_frequency_hz
    if sheet.memory_latency_s <= least_s:
        problem = f"should be greater than that of the last cache, {least_s:.3g}"
        yield Finding(("memory_latency_s",), problem, f"{sheet.memory_latency_s:g}")


def _variant(name: str, sheet: Sheet, known: Sequence[str], variants: Set[str]) -> Iterator[Finding]:
    other, others = sheet.variant_of, [one for one in known if one != name]
    if other and other not in others:
        yield Finding(("variant_of",), f"should be another platform ({closest(other, others)})", shown(other))
    elif other in variants:
        yield Finding(("variant_of",), "should be a whole server, not a configuration of one", shown(other))


def _platform(name: str, sheet: Sheet, file: Path) -> Platform:
    """Return the platform of a sheet that is right."""
    said = {field.name: getattr(sheet, field.name) for field in fields(Sheet) if field.name != "extends"}
    caches = tuple(Cache(level.size_bytes, level.latency_cycles, level.cores) for level in sheet.caches)
    made_of = {
        "name": name,
        "caches": caches,
        "llc_bytes": sheet.sockets * pooled_bytes(caches[-1], sheet.cores // sheet.sockets),
        "min_frequency_hz": sheet.min_frequency_hz or sheet.base_frequency_hz,
        "max_frequency_hz": sheet.max_frequency_hz or sheet.base_frequency_hz,
        "source": sheet.source or f"{file}" + (f", from {sheet.extends}" if sheet.extends else ""),
    }
    return Platform(**said | made_of)


_SHEET: TypeAdapter[Sheet] = TypeAdapter(Sheet)
_CHECKS: Mapping[Check[Sheet], tuple[str, ...]] = {
    _processors: ("cores", "sockets"),
    _clocks: ("min_frequency_hz", "base_frequency_hz", "max_frequency_hz"),
    _levels: ("caches", "cores", "sockets"),
    _memory: ("caches", "base_frequency_hz", "memory_latency_s"),
}
