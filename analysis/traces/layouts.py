"""The tables of public traces: which columns they have, where, and what of them is used."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "maybe_name", "time", "amount", "amount_or_invalid", "count"]
"""What a column holds: a name, one that may be missing, a time, a number that may be missing, one of which the trace
says that -1 and 101 stand for values that are not valid, and a count of events, which may be missing, too."""


@dataclass(frozen=True, slots=True)
class TraceColumn:
    """A column of a trace that is used: what it is here, what files call it, what it holds, and where it stands.

    Examples
    --------
    >>> TraceColumn("cpus", ("average_usage.cpus",), "amount").called("Average_Usage_CPUs")
    True
    """

    field: str
    names: tuple[str, ...]
    kind: Kind
    at: int = -1
    """Place from 0 in files without a line of names; -1: such files are not published."""
    required: bool = True

    def called(self, name: str) -> bool:
        """Return whether that is one of its names, whatever stands between the words."""
        return bare(name) in map(bare, self.names)


@dataclass(frozen=True, slots=True)
class TraceTable:
    """A table of a trace: the columns that are used, and how many fields a row has if no line names them."""

    table: str
    columns: tuple[TraceColumn, ...]
    widths: tuple[int, ...] = ()

    def places_of(self, names: Sequence[str]) -> dict[str, int]:
        """Return the places, from 0, of the columns that are used among those of a file.

        Examples
        --------
        >>> FORMATS["alibaba2018"].usage.places_of(["container_id", "cpi", "machine_id"])
        {'index': 0, 'machine': 2, 'cpi': 1}
        """
        places = {
            column.field: next((at for at, name in enumerate(names) if column.called(name)), -1)
            for column in self.columns
        }
        return {field: at for field, at in places.items() if at >= 0}

    def fixed(self) -> dict[str, int]:
        """Return the places of the columns that are used in a file without a line of names."""
        return {column.field: column.at for column in self.columns if column.at >= 0}

    def missing(self, places: Mapping[str, int]) -> list[str]:
        """Return the names of required columns that have no place."""
        return [column.names[0] for column in self.columns if column.required and column.field not in places]


@dataclass(frozen=True, slots=True)
class Format:
    """A public trace: its table of use, its table of requests, and how both are to be read."""

    name: str
    usage: TraceTable
    requests: TraceTable
    tick_us: int
    """Length of the unit of times, in microseconds."""
    sample_us: int = 0
    """How long a row of the table of use stands for; 0: it says its end itself."""
    requested_cpus: float = 1.0
    """CPUs in a unit of requests."""
    use_of_request: float = 0.0
    """What use is multiplied by to be a share of the request; 0: it is in CPUs."""
    cpu: str = "CPUs"
    """What CPU time is counted in."""
    hosts: TraceTable | None = None
    """Its table of machines: name, platform, and the clock of reference cycles in GHz."""

    @property
    def numbered(self) -> bool:
        """Whether an instance is a number within its job, which the table of use then says."""
        return any(column.field == "job" for column in self.usage.columns)

    @property
    def counted(self) -> bool:
        """Whether rows of use are counts of events, which do not say how long they stand for."""
        return any(column.field == "instructions" for column in self.usage.columns)

    @property
    def requested(self) -> bool:
        """Whether the table of requests says what an instance itself asked for."""
        return any(column.field == "request" for column in self.requests.columns)


def bare(name: str) -> str:
    """Return a column's name in small letters with one underscore between words."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


_TASK_USAGE = TraceTable(
    "task_usage",
    (
        TraceColumn("start", ("start time", "start"), "time", 0),
        TraceColumn("end", ("end time", "end"), "time", 1),
        TraceColumn("job", ("job ID",), "name", 2),
        TraceColumn("index", ("task index",), "name", 3),
        TraceColumn("machine", ("machine ID",), "maybe_name", 4),
        TraceColumn("cpus", ("CPU rate", "mean CPU usage rate", "mean CPU usage"), "amount", 5),
        TraceColumn("cpi", ("cycles per instruction", "cycles per instruction (CPI)", "CPI"), "amount", 15),
    ),
    widths=(19, 20),
)
_TASK_EVENTS = TraceTable(
    "task_events",
    (
        TraceColumn("job", ("job ID",), "name", 2),
        TraceColumn("index", ("task index",), "name", 3),
        TraceColumn("request", ("CPU request", "resource request for CPU cores"), "amount", 9),
    ),
    widths=(13,),
)
_INSTANCE_USAGE = TraceTable(
    "instance_usage",
    (
        TraceColumn("start", ("start_time",), "time"),
        TraceColumn("end", ("end_time",), "time"),
        TraceColumn("job", ("collection_id",), "name"),
        TraceColumn("index", ("instance_index",), "name"),
        TraceColumn("machine", ("machine_id",), "maybe_name"),
        TraceColumn("collection", ("collection_type",), "maybe_name", required=False),
        TraceColumn("cpus", ("average_usage.cpus",), "amount"),
        TraceColumn("cpi", ("cycles_per_instruction",), "amount"),
    ),
)
_INSTANCE_EVENTS = TraceTable(
    "instance_events",
    (
        TraceColumn("job", ("collection_id",), "name"),
        TraceColumn("index", ("instance_index",), "name"),
        TraceColumn("request", ("resource_request.cpus",), "amount"),
    ),
)
_CONTAINER_USAGE = TraceTable(
    "container_usage",
    (
        TraceColumn("index", ("container_id",), "name", 0),
        TraceColumn("machine", ("machine_id",), "maybe_name", 1),
        TraceColumn("start", ("time_stamp",), "time", 2),
        TraceColumn("cpus", ("cpu_util_percent",), "amount_or_invalid", 3),
        TraceColumn("cpi", ("cpi",), "amount", 5),
    ),
    widths=(11,),
)
_CONTAINER_META = TraceTable(
    "container_meta",
    (
        TraceColumn("index", ("container_id",), "name", 0),
        TraceColumn("job", ("app_du", "deploy_unit"), "name", 3),
        TraceColumn("request", ("cpu_request",), "amount", 5),
    ),
    widths=(8,),
)
_CORE_PMU = TraceTable(
    "core_pmu",
    (
        TraceColumn("start", ("ts",), "time", 0),
        TraceColumn("machine", ("node_id",), "maybe_name", 1),
        TraceColumn("index", ("container_id",), "name", 2),
        TraceColumn("cpu", ("cpu",), "maybe_name", 3, required=False),
        TraceColumn("instructions", ("instructions",), "count", 6),
        TraceColumn("cycles", ("cycles",), "count", 7),
        TraceColumn("reference", ("ref_cycles",), "count", 8),
        TraceColumn("misses", ("llc_misses",), "count", 9),
    ),
    widths=(10,),
)
_AMTRACE_META = TraceTable(
    "container_meta",
    (
        TraceColumn("index", ("container_id",), "name", 1),
        TraceColumn("job", ("app_name",), "maybe_name", 4),
        TraceColumn("role", ("container_type",), "maybe_name", 6),
    ),
    widths=(11,),
)
_HOST_META = TraceTable(
    "host_meta",
    (
        TraceColumn("machine", ("node_id",), "name", 0),
        TraceColumn("platform", ("cpu_model",), "maybe_name", 3),
        TraceColumn("clock_ghz", ("ref_freq_Ghz",), "amount", 4),
    ),
    widths=(6,),
)

FORMATS: Mapping[str, Format] = {
    trace.name: trace
    for trace in (
        Format("google2011", _TASK_USAGE, _TASK_EVENTS, 1, cpu="the CPUs of the trace's largest machine"),
        Format("google2019", _INSTANCE_USAGE, _INSTANCE_EVENTS, 1, cpu="normalised compute units"),
        Format("alibaba2018", _CONTAINER_USAGE, _CONTAINER_META, 1_000_000, 10_000_000, 0.01, 0.01),
        Format("amtrace", _CORE_PMU, _AMTRACE_META, 1_000_000, cpu="billions of reference cycles", hosts=_HOST_META),
    )
}
"""The traces by name.

Reiss, Wilkes, Hellerstein: *Google cluster-usage traces: format + schema*, version 2.1, 2014, table of task resource
usage; Wilkes: *Google cluster-usage traces v3*, 2020, InstanceUsage; Alibaba: *cluster-trace-v2018*, container_usage
and container_meta, where use is a percentage of the request and 100 units of a request are a core; Alibaba:
*cluster-trace-microarchitecture-v2022* (AMTrace), core_pmu_metrics, container_meta and host_meta, as corrected in July
2023: the published files of counters have ten columns, without a pod.
"""
