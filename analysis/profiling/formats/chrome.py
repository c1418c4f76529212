"""Chrome's and Node's profiles in JSON: `.cpuprofile` of CPU time, `.heapprofile` of sampled allocations."""

import math
from typing import Any

from analysis.profiling.formats.foreign import ForeignProfile, Frame, Measure
from analysis.profiling.formats.json_values import Object, field, typed
from analysis.profiling.formats.stack_sums import StackSums
from analysis.tables.faults import plain, refusal

_US = 1000
_ROOT = "(root)"


def is_cpuprofile(content: Object) -> bool:
    """Return whether JSON is a CPU profile: nodes, and when it began."""
    return "nodes" in content and "startTime" in content


def is_heapprofile(content: Object) -> bool:
    """Return whether JSON is a profile of sampled allocations."""
    return isinstance(content.get("head"), dict) and "selfSize" in content["head"]


def read_cpuprofile(content: Object, name: str = "a.cpuprofile") -> ForeignProfile:
    """Read a CPU profile (Chrome DevTools Protocol, Profiler.Profile): `samples`, and `cpu` in nanoseconds.

    A sample stands for the time until the next one, the last until the end. `(idle)`, `(program)` and
    `(garbage collector)` stay functions of these names. Without single samples, hits of nodes are samples, each of the
    mean time.

    Parameters
    ----------
    content : the file's JSON
    name : of the file, for faults
    """
    nodes = _nodes(field(content, "nodes", list, name), name)
    start, end = field(content, "startTime", float, name), field(content, "endTime", float, name)
    amounts: dict[int, list[int]] = {}
    for number, duration in _samples(content, nodes, float(start), float(end), name):
        if not typed(number, int) or number not in nodes:
            raise refusal(name, "samples", "should be ids of nodes", number)
        own = amounts.setdefault(number, [0, 0])
        own[0] += 1
        own[1] += round(duration * _US)
    sums, frames = StackSums(name, 2), dict[int, list[Frame]]()
    for number, own in amounts.items():
        sums.add(_stack(nodes, frames, number, name), own)
    if not sums.sums:
        raise refusal(name, "samples", "should be at least one", "none")
    return ForeignProfile(
        (Measure("samples"), Measure("cpu", "nanoseconds")),
        tuple(sums.frames),
        sums.samples(),
        name=name,
        length_s=max(float(end) - float(start), 0.0) / 1e6,
    )


def read_heapprofile(content: Object, name: str = "a.heapprofile") -> ForeignProfile:
    """Read a profile of sampled allocations (HeapProfiler.SamplingHeapProfile): `inuse_space` in bytes.

    Parameters
    ----------
    content : the file's JSON
    name : of the file, for faults
    """
    sums = StackSums(name, 1)
    waiting: list[tuple[Any, list[Frame]]] = [(content["head"], [])]
    while waiting:
        node, callers = waiting.pop()
        stack = [*_frames(node, name), *callers]
        size = field(node, "selfSize", int, name, 0)
        if size:
            sums.add(stack, (size,))
        waiting += [(child, stack) for child in reversed(field(node, "children", list, name, []))]
    if not sums.sums:
        raise refusal(name, "selfSize", "should not be 0 throughout", "0")
    return ForeignProfile((Measure("inuse_space", "bytes"),), tuple(sums.frames), sums.samples(), name=name)


def _nodes(listed: list[Any], name: str) -> dict[int, tuple[Any, int | None]]:
    """Return nodes with their callers, by id."""
    nodes: dict[int, Any] = {}
    caller: dict[int, int] = {}
    for node in listed:
        number = field(node, "id", int, name)
        if number in nodes:
            raise refusal(name, "id", "should be there once", number)
        nodes[number] = node
        if "parent" in node:
            caller[number] = field(node, "parent", int, name)
        for child in field(node, "children", list, name, []):
            if not typed(child, int) or caller.setdefault(child, number) != number:
                raise refusal(name, "children", "should be ids, each of one caller", child)
    return {number: (node, caller.get(number)) for number, node in nodes.items()}


def _samples(
    content: Object, nodes: dict[int, tuple[Any, int | None]], start: float, end: float, name: str
) -> list[tuple[int, float]]:
    """Return the node of each sample and for how long it stands, in microseconds."""
    if not math.isfinite(start) or not math.isfinite(end):
        raise refusal(name, "endTime", "should be a time", end)
    samples, deltas = field(content, "samples", list, name, []), field(content, "timeDeltas", list, name, [])
    if not samples:
        hits = [(number, field(node, "hitCount", int, name, 0)) for number, (node, _) in nodes.items()]
        if sum(count for _, count in hits) > 10**7:
            raise refusal(name, "hitCount", "should be at most 10000000 in all", "more")
        mean = max(end - start, 0.0) / max(sum(count for _, count in hits), 1)
        return [(number, mean) for number, count in hits for _ in range(count)]
    if len(deltas) != len(samples):
        raise refusal(name, "timeDeltas", f"should be {len(samples)}, one a sample", len(deltas))
    at, times = start, []
    for delta in deltas:
        if not typed(delta, float) or not math.isfinite(delta):
            raise refusal(name, "timeDeltas", "should be numbers", delta)
        at += delta
        times.append(at)
    ends = [*times[1:], end]
    return [(number, max(after - time, 0.0)) for number, time, after in zip(samples, times, ends, strict=True)]


def _stack(
    nodes: dict[int, tuple[Any, int | None]], frames: dict[int, list[Frame]], number: int, name: str
) -> list[Frame]:
    """Return the frames of a node and of its callers; those of a node are read once, into `frames`."""
    stack: list[Frame] = []
    at: int | None = number
    for _ in range(len(nodes) + 1):
        if at is None:
            return stack
        if at not in nodes:
            raise refusal(name, "parent", "should be the id of a node", at)
        node, caller = nodes[at]
        if at not in frames:
            frames[at] = _frames(node, name)
        stack += frames[at]
        at = caller
    raise refusal(name, "nodes", "should not be their own callers", number)


def _frames(node: object, name: str) -> list[Frame]:
    """Return a node's frame; none of the root."""
    frame = field(node, "callFrame", dict, name)
    function = plain(field(frame, "functionName", str, name, "")).strip() or "(anonymous)"
    line = field(frame, "lineNumber", int, name, -1)
    file = plain(field(frame, "url", str, name, ""))
    return (
        [] if function == _ROOT else [Frame(function, file=file, function_line=line + 1 if 0 <= line < 1 << 30 else 0)]
    )
