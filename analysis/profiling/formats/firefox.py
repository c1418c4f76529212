"""Firefox's profiles in JSON: as the browser writes them, and as its profiler saves them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.profiling.formats.foreign import UNKNOWN, ForeignProfile, Frame, Measure, Origin
from analysis.profiling.formats.json_values import Object, field, place, typed
from analysis.profiling.formats.stack_sums import StackSums
from analysis.tables.faults import plain, refusal

_MOST_THREADS = 100_000


def is_firefox(content: Object) -> bool:
    """Return whether JSON is such, or holds such a profile: threads, and what the browser was."""
    profile = content.get("profile", content)
    return isinstance(profile, dict) and "threads" in profile and isinstance(profile.get("meta"), dict)


def read_firefox(content: Object, name: str = "firefox.json") -> ForeignProfile:
    """Read a profile of Firefox (firefox-devtools/profiler, docs-developer/gecko-profile-format.md).

    Each sample with a stack counts as one of `samples`, or by its weight. Threads and processes become the labels
    `thread` and `process`; the interval between samples says for how long each stands, as the event `time`.

    Parameters
    ----------
    content : the file's JSON
    name : of the file, for faults
    """
    profile = content.get("profile", content)
    interval_ms = field(profile["meta"], "interval", float, name, 1.0)
    shared = profile.get("shared") if isinstance(profile.get("shared"), dict) else {}
    sums = StackSums(name, 2)
    waiting, threads = [profile], 0
    while waiting:
        process = waiting.pop()
        for thread in field(process, "threads", list, name):
            threads += 1
            if not isinstance(thread, dict):
                raise refusal(name, "threads", "should be objects", thread)
            if threads > _MOST_THREADS:
                raise refusal(name, "threads", f"should be at most {_MOST_THREADS}", "more")
            _ThreadReader.of(thread, shared, name).take(sums, max(round(interval_ms * 1e6), 0))
        waiting += field(process, "processes", list, name, [])
    if not sums.sums:
        raise refusal(name, "samples", "should be at least one", "none")
    start_ms = field(profile["meta"], "startTime", float, name, 0.0)
    return ForeignProfile(
        (Measure("samples"), Measure("time", "nanoseconds")),
        tuple(sums.frames),
        sums.samples(),
        tuple(sums.origins),
        name=name,
        start_s=start_ms / 1e3 if start_ms > 0 else float("nan"),
    )


@dataclass(frozen=True, slots=True)
class _ThreadReader:
    """The tables of a thread, each a list of rows' values by column."""

    samples: Mapping[str, Sequence[Any]]
    stacks: Mapping[str, Sequence[Any]]
    frames: Mapping[str, Sequence[Any]]
    functions: Mapping[str, Sequence[Any]] | None
    """None: frames say their location as a text."""
    texts: Sequence[Any]
    origin: Origin
    name: str

    @classmethod
    def of(cls, thread: Object, shared: Object, name: str) -> "_ThreadReader":
        """Return a thread's tables, of which some may be shared by all threads."""
        table = {key: thread.get(key, shared.get(key)) for key in ("samples", "stackTable", "frameTable", "funcTable")}
        texts = next(
            (
                table_of_texts
                for table_of_texts in (thread.get("stringTable"), thread.get("stringArray"), shared.get("stringArray"))
                if isinstance(table_of_texts, list)
            ),
            [],
        )
        labels = {"process": thread.get("processName") or thread.get("processType"), "thread": thread.get("name")}
        named = tuple((key, plain(str(value))) for key, value in labels.items() if value)
        functions = None if table["funcTable"] is None else _columns(table["funcTable"], name)
        samples, stacks, frames = (_columns(table[key], name) for key in ("samples", "stackTable", "frameTable"))
        return cls(samples, stacks, frames, functions, texts, Origin(labels=named), name)

    def take(self, sums: StackSums, interval_ns: int) -> None:
        """Add the thread's samples."""
        stacks = self.samples.get("stack", [])
        weights = self.samples.get("weight") or []
        counts: dict[int, int] = {}
        for at, stack in enumerate(stacks):
            if stack is not None:
                weight = weights[at] if at < len(weights) else 1
                count = weight if typed(weight, int) else 1
                place(self.stacks.get("frame", []), stack, "stack", self.name)
                counts[stack] = counts.get(stack, 0) + max(count, 0)
        known: dict[int, Frame] = {}
        for stack, count in counts.items():
            if count:
                sums.add(self._stack(stack, known), (count, count * interval_ns), self.origin)

    def _stack(self, at: object, known: dict[int, Frame]) -> list[Frame]:
        """Return the frames of a stack; each is read once, into `known`."""
        prefixes, frames = self.stacks.get("prefix", []), self.stacks.get("frame", [])
        path: list[Frame] = []
        while at is not None:
            frame = place(frames, at, "stack", self.name)
            if len(path) > len(frames):
                raise refusal(self.name, "stackTable", "should not be its own caller", at)
            if not typed(frame, int) or frame not in known:
                known[frame] = self._frame(frame)
            path.append(known[frame])
            at = place(prefixes, at, "prefix", self.name)
        return path

    def _frame(self, at: object) -> Frame:
        if self.functions is None:
            text = place(
                self.texts, place(self.frames.get("location", []), at, "frame", self.name), "location", self.name
            )
            function, _, place_of = str(text).partition(" (")
            return Frame(plain(function).strip() or UNKNOWN, file=plain(place_of.removesuffix(")")))
        function = place(self.frames.get("func", []), at, "frame", self.name)
        name = place(self.texts, place(self.functions.get("name", []), function, "func", self.name), "name", self.name)
        return Frame(plain(str(name)).strip() or UNKNOWN)


def _columns(table: object, name: str) -> Mapping[str, Sequence[Any]]:
    """Return a table's columns: it is such, or has rows and a schema of their columns."""
    if not isinstance(table, dict):
        raise refusal(name, "threads", "should have samples, stackTable and frameTable", type(table).__name__)
    if "schema" not in table:
        return {key: column for key, column in table.items() if isinstance(column, list)}
    rows, schema = field(table, "data", list, name), field(table, "schema", dict, name)
    return {
        key: [row[at] if isinstance(row, list) and at < len(row) else None for row in rows]
        for key, at in schema.items()
        if typed(at, int) and at >= 0
    }
