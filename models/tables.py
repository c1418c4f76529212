"""The columns of every table, said once: name with unit, type, meaning; by which of them rows are told apart.

Writers, readers, checks and the documentation all use this list. Tables whose name begins with ``truth_`` hold what
no real fleet could know; analyses never read them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name with unit, its Arrow type and what it means.

    Examples
    --------
    >>> Column("power_w", pa.float64(), "mean power; NaN: not answered").may_be_nan
    True
    """

    name: str
    type: pa.DataType
    meaning: str

    @property
    def may_be_nan(self) -> bool:
        """Whether a number may be NaN: its meaning then says what that stands for."""
        return "NaN:" in self.meaning

    @property
    def least(self) -> float:
        """Least value of a number: 0, or −1 if its meaning says what that stands for; changes and moments have none."""
        signed = self.meaning.startswith(("relative change", "when, relative"))
        return -math.inf if signed else -1 if "−1:" in self.meaning else 0


_INT, _LONG, _FLOAT, _TEXT, _BOOL = pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_()

MACHINES = (
    Column("machine", _INT, "0, 1, 2, …"),
    Column("rack", _INT, "rack it stands in"),
    Column("power_domain", _INT, "power domain of the rack"),
    Column("platform", _TEXT, "platform before the feature"),
    Column("vcpus", _INT, "hardware threads, the CPU capacity that quotas may fill"),
    Column("memory_bytes", _FLOAT, "memory capacity"),
    Column("feature", _BOOL, "whether the recorded fleet has the feature here at the end, or switches it on and off"),
    Column("feature_from_s", _FLOAT, "when it was first switched on here; NaN: never"),
)

JOBS = (
    Column("job", _INT, "0, 1, 2, … in order of falling quota"),
    Column("name", _TEXT, "its name; the same name in another WSC is the same job"),
    Column("latency_critical", _BOOL, "outranks best-effort jobs"),
    Column("instances", _INT, "instances asked for"),
    Column("quota_vcpu", _FLOAT, "CPU quota of the whole job, in hardware threads"),
)

INSTANCES = (
    Column("residence", _INT, "one stay of an instance on one machine; 0, 1, 2, …"),
    Column("instance", _INT, "the instance; one that moves or restarts has several residences"),
    Column("job", _INT, "its job"),
    Column("shard", _INT, "which piece of the job's data it serves"),
    Column("machine", _INT, "where"),
    Column("rack", _INT, "rack of the machine"),
    Column("power_domain", _INT, "power domain of the machine"),
    Column("platform", _TEXT, "platform of the machine before the feature"),
    Column("quota_vcpu", _FLOAT, "CPU quota of the instance"),
    Column("start_s", _FLOAT, "start of the stay"),
    Column("end_s", _FLOAT, "end of the stay, the horizon's end at most"),
    Column("ended_by", _TEXT, "horizon, exit, restart, drain, failure or preemption"),
    Column("feature", _BOOL, "whether the recorded fleet gave it the feature by the end of the stay"),
)

COUNTERS = (
    Column("residence", _INT, "the stay that was measured"),
    Column("window", _TEXT, "name of the counting window"),
    Column("cycles", _FLOAT, "unhalted core cycles"),
    Column("instructions", _FLOAT, "retired instructions"),
    Column("llc_misses", _FLOAT, "last-level-cache misses"),
    Column("cpu_s", _FLOAT, "CPU time"),
    Column("wall_s", _FLOAT, "time present in the window"),
    Column("mean_frequency_hz", _FLOAT, "cycles over CPU time; NaN: it did not run"),
    Column("requests", _FLOAT, "user-level operations completed"),
    Column("cpu_wait_s", _FLOAT, "time for which threads were runnable while others ran in their place"),
    Column("cpu_throttled_s", _FLOAT, "time for which threads were runnable while the quota was used up"),
)

MACHINE_WINDOWS = (
    Column("machine", _INT, "machine"),
    Column("window", _TEXT, "name of the counting window"),
    Column("cycles", _FLOAT, "cycles of all its instances"),
    Column("instructions", _FLOAT, "instructions of all its instances"),
    Column("llc_misses", _FLOAT, "last-level-cache misses of all its instances"),
    Column("cpu_s", _FLOAT, "CPU time of all its instances"),
    Column("energy_j", _FLOAT, "energy of the machine, idle power included"),
    Column("capped_share", _FLOAT, "share of epochs in which TDP or power cap lowered the clock"),
)

EPOCHS = (
    Column("epoch", _INT, "0, 1, 2, …"),
    Column("start_s", _FLOAT, "start of the epoch"),
    Column("instances", _INT, "instances running"),
    Column("quota_vcpu", _FLOAT, "CPU quota of the running instances"),
    Column("cycles", _FLOAT, "cycles of the fleet"),
    Column("instructions", _FLOAT, "instructions of the fleet"),
    Column("llc_misses", _FLOAT, "last-level-cache misses of the fleet"),
    Column("cpu_s", _FLOAT, "CPU time of the fleet"),
    Column("energy_j", _FLOAT, "energy of the fleet"),
    Column("capped_share", _FLOAT, "share of machines whose TDP or power cap lowered the clock"),
    Column("residual_max", _FLOAT, "largest relative residual of the interference fixed point on any machine"),
)

EVENTS = (
    Column("time_s", _FLOAT, "when"),
    Column("kind", _TEXT, "arrival, exit, restart, drain, drain_end, failure, repair, preemption, rollout"),
    Column("machine", _INT, "machine concerned; −1: none"),
    Column("instance", _INT, "instance concerned; −1: none"),
)

SWITCHES = (
    Column("machine", _INT, "machine"),
    Column("period", _INT, "period of the crossover; 0, 1, 2, …"),
    Column("start_s", _FLOAT, "start of the period"),
    Column("end_s", _FLOAT, "end of the period"),
    Column(
        "feature",
        _BOOL,
        "whether the machine was assigned the feature in the period; until it settles the old state acts",
    ),
)

INSTANCE_EPOCHS = (
    Column("residence", _INT, "the stay that was measured"),
    Column("epoch", _INT, "epoch"),
    Column("cycles", _FLOAT, "unhalted core cycles"),
    Column("instructions", _FLOAT, "retired instructions"),
    Column("llc_misses", _FLOAT, "last-level-cache misses"),
    Column("cpu_s", _FLOAT, "CPU time"),
)

MACHINE_EPOCHS = (
    Column("machine", _INT, "machine"),
    Column("epoch", _INT, "epoch"),
    Column("frequency_hz", _FLOAT, "frequency of the P-state chosen"),
    Column("power_w", _FLOAT, "mean power"),
    Column("utilisation", _FLOAT, "busy hardware threads over all"),
    Column("bandwidth_utilisation", _FLOAT, "memory bandwidth used over available"),
)

TRUTH_JOBS = (
    Column("job", _INT, "job"),
    Column("core_cpi", _FLOAT, "cycles per instruction without last-level-cache misses, alone on a core"),
    Column("memory_accesses_per_instruction", _FLOAT, "at the reference cache share"),
    Column("overlap", _FLOAT, "overlapping misses"),
    Column("input_log_sd", _FLOAT, "persistent spread between shards"),
    Column("stall_share", _FLOAT, "share of cycles stalled on memory alone on the reference machine"),
)

ROUNDS = (
    Column("round", _INT, "1, 2, … of the gather, plan, roll out, check loop"),
    Column("machines", _INT, "machines with the feature in this round"),
    Column("jobs", _INT, "jobs with enough instances"),
    Column("target_margin", _FLOAT, "relative margin asked for"),
    Column("planned_margin", _FLOAT, "relative margin that the plan promises"),
    Column("margin", _FLOAT, "relative margin realised; NaN: no job has enough instances"),
    Column("change", _FLOAT, "relative change estimated over the covered jobs; NaN: there are none"),
    Column("quota_coverage", _FLOAT, "share of the CPU quota that the covered jobs hold"),
    Column("accepted", _BOOL, "whether the margin meets the target"),
)

REQUESTS = (
    Column("request", pa.int64(), "0, 1, 2, … in order of arrival"),
    Column("type", _TEXT, "type of the request"),
    Column("session", pa.int64(), "session or client that asked; −1: none"),
    Column("arrival_s", _FLOAT, "when it was sent, by the observer's clock"),
    Column("departure_s", _FLOAT, "when its answer was there, by the observer's clock"),
)

STAY_REQUESTS = (
    Column("residence", _INT, "the stay of an instance that served it"),
    Column("request", _INT, "0, 1, 2, … in order of arrival at that stay"),
    Column("type", _TEXT, "type of the request"),
    Column("arrival_s", _FLOAT, "when it arrived, within the fleet's horizon"),
    Column("departure_s", _FLOAT, "when its answer was there; NaN: the stay ended before"),
)

STAY_UNSERVED = (
    Column("residence", _INT, "the stay of an instance that refused it, being full"),
    Column("type", _TEXT, "type of the request"),
    Column("arrival_s", _FLOAT, "when it came, within the fleet's horizon"),
)

UNSERVED = (
    Column("request", pa.int64(), "the request, as in `requests`, that was served at a later attempt; −1: never"),
    Column("attempt", pa.int64(), "0: the first attempt; 1, 2, …: when it came again"),
    Column("type", _TEXT, "type of the request"),
    Column("session", pa.int64(), "session that asked; −1: none"),
    Column("arrival_s", _FLOAT, "when it was sent, by the observer's clock"),
    Column("departure_s", _FLOAT, "when its failure was known, by the observer's clock"),
    Column(
        "outcome",
        _TEXT,
        "`refused`: the station was full; `gave up`: no server took it in time; `timed out`: it was not done in time",
    ),
)

SERVER_COUNTS = (
    Column("time_s", _FLOAT, "from when on"),
    Column("servers", pa.int64(), "servers that are on: they take requests, or finish one and go"),
    Column("starting", pa.int64(), "servers that were ordered and do not take requests yet"),
)

STATION_REQUESTS = (
    Column("station", _TEXT, "the station; its rows are in order of arrival there"),
    Column("request", pa.int64(), "the request, as in `requests`"),
    Column("arrival_s", _FLOAT, "when it came to the station, by the server's clock"),
    Column("departure_s", _FLOAT, "when it left the station, by the server's clock"),
)

STATION_CPU = (
    Column("station", _TEXT, "the station"),
    Column("start_s", _FLOAT, "start of the counting interval"),
    Column("end_s", _FLOAT, "end of the counting interval"),
    Column("utilisation", _FLOAT, "busy servers over all servers; NaN: not measured in the interval"),
)

REPLAYS = (
    Column("servers", _INT, "number of servers that served the same load"),
    Column("request", pa.int64(), "the request, as in `requests`"),
    Column("arrival_s", _FLOAT, "when it was sent, by the observer's clock"),
    Column("departure_s", _FLOAT, "when its answer was there, by the observer's clock"),
)

CPU = (
    Column("start_s", _FLOAT, "start of the counting interval"),
    Column("end_s", _FLOAT, "end of the counting interval"),
    Column(
        "utilisation",
        _FLOAT,
        "busy servers over all servers, including work that is in no request log; NaN: not measured in the interval",
    ),
)

TRUTH_REQUESTS = (
    Column("request", pa.int64(), "the request, as in `requests`; −1: work that is in no request log, or in vain"),
    Column("arrival_s", _FLOAT, "when it entered the queue"),
    Column("start_s", _FLOAT, "when a server first took it"),
    Column("departure_s", _FLOAT, "when its service was complete"),
    Column("demand_s", _FLOAT, "service demand on a server of speed 1"),
)

TRUTH_STATION_REQUESTS = (
    Column("station", _TEXT, "the station; rows are those of `station_requests`"),
    Column("request", pa.int64(), "the request, as in `requests`"),
    Column("start_s", _FLOAT, "when a server first took it"),
    Column("waiting_s", _FLOAT, "time at the station beyond its service demand"),
    Column("demand_s", _FLOAT, "service demand at the station"),
)

TRUTH_MACHINE = (
    Column("start_s", _FLOAT, "start of the counting interval"),
    Column("end_s", _FLOAT, "end of the counting interval"),
    Column("speed", _FLOAT, "speed of busy servers, relative to one request alone; NaN: none was busy"),
    Column(
        "slowdown", _FLOAT, "time of the neighbours' instructions over that without the requests; NaN: after the end"
    ),
    Column("power_w", _FLOAT, "mean power of the machine; NaN: after the last departure"),
    Column("capped_share", _FLOAT, "share of the time in which TDP or power cap lowered clocks; NaN: after the end"),
    Column("frequency_hz", _FLOAT, "mean P-state; NaN: after the last departure"),
    Column("machine_utilisation", _FLOAT, "busy hardware threads over all; NaN: after the last departure"),
    Column("bandwidth_utilisation", _FLOAT, "memory traffic over bandwidth; NaN: after the last departure"),
)

TRUTH_ONE_WAY = (
    Column("request", pa.int64(), "the request, as in `requests`"),
    Column("arrival_s", _FLOAT, "when it entered the queue"),
    Column("departure_s", _FLOAT, "when its service would be complete at speeds averaged over five minutes"),
)

SERVICE_COUNTS = (
    Column("start_s", _FLOAT, "start of the interval"),
    Column("type", _TEXT, "type of request"),
    Column("requests", pa.int64(), "requests of that type that arrived in the interval"),
)

SERVICE_LOG = (
    Column("platform", _TEXT, "platform that was measured"),
    Column("start_s", _FLOAT, "start of the interval"),
    Column("instructions", _FLOAT, "retired instructions, as sampled"),
    Column("l1_misses", _FLOAT, "data misses of the first cache level, as sampled"),
    Column("l2_misses", _FLOAT, "data misses of the second cache level, as sampled"),
    Column("response_time_s", _FLOAT, "mean response time of the interval's requests; NaN: none came"),
)

SERVICE_CPU = (
    Column("platform", _TEXT, "platform that was measured"),
    Column("start_s", _FLOAT, "start of the interval"),
    Column("utilisation", _FLOAT, "busy logical processors over all, as the operating system counts"),
)

BENCHMARKS = (
    Column("platform", _TEXT, "platform"),
    Column("score_per_s", _FLOAT, "published score: requests per second of a busy machine"),
    Column("instructions", _FLOAT, "instructions of a request; NaN: not published for this platform"),
    Column("l1_misses", _FLOAT, "first-level data misses of a request; NaN: not published"),
    Column("l2_misses", _FLOAT, "second-level data misses of a request; NaN: not published"),
)

TRUTH_SERVICE = (
    Column("platform", _TEXT, "platform"),
    Column("start_s", _FLOAT, "start of the interval"),
    Column("requests", pa.int64(), "requests that arrived in the interval"),
    Column("service_time_s", _FLOAT, "utilisation × length of the interval / requests; NaN: no requests"),
    Column("response_time_s", _FLOAT, "mean response time of the interval's requests; NaN: none came"),
    Column("utilisation", _FLOAT, "busy logical processors over all"),
    Column("instructions", _FLOAT, "retired instructions"),
    Column("l1_misses", _FLOAT, "first-level data misses"),
    Column("l2_misses", _FLOAT, "second-level data misses"),
)

TRUTH_SERVICE_TYPES = (
    Column("platform", _TEXT, "platform"),
    Column("type", _TEXT, "type of request"),
    Column("processor_s", _FLOAT, "mean CPU time of a request alone on an idle machine"),
    Column(
        "response_time_s",
        _FLOAT,
        "mean response time with requests of this type alone, ten per second; NaN: more than it can serve",
    ),
    Column("other_tiers_s", _FLOAT, "mean delay at the other tiers"),
)

TRUTH_MISS_CURVE = (
    Column("size_bytes", _FLOAT, "size of the cache, nominal"),
    Column("misses_per_instruction", _FLOAT, "data misses of the whole service in its long-run mix, alone"),
)

TRUTH_THROUGHPUT = (
    Column("platform", _TEXT, "platform"),
    Column("bound_s", _FLOAT, "bound on mean response time"),
    Column("throughput_per_s", _FLOAT, "greatest arrival rate of the mean mix that keeps it; 0: none"),
)

PROFILE_MACHINES = (
    Column("machine", _INT, "machine"),
    Column("datacentre", _TEXT, "data centre"),
    Column("kernel_from_s", _FLOAT, "when it got the new operating-system kernel; NaN: not within the horizon"),
)

MONITOR = (
    Column("machine", _INT, "machine"),
    Column("start_s", _FLOAT, "start of the day"),
    Column("busy_s", _FLOAT, "busy time of its hardware threads in that day, by the fleet's monitoring"),
)

VISITS = (
    Column("visit", _INT, "one machine profiled once by one collection; 0, 1, 2, …"),
    Column(
        "collection",
        _TEXT,
        "collection that the visit belongs to: fleet, or the name of an application-specific profile",
    ),
    Column("machine", _INT, "machine"),
    Column("datacentre", _TEXT, "data centre"),
    Column("platform", _TEXT, "platform at the time"),
    Column("kernel", _TEXT, "version of the operating-system kernel at the time"),
    Column("start_s", _FLOAT, "when it began"),
    Column("length_s", _FLOAT, "length of the visit, all events"),
    Column("weight", _LONG, "visits' time that this one stands for: machines × epochs of the round over those visited"),
    Column(
        "status", _TEXT, "ok, failed, refused (by a gatekeeper), stopped (too many failures), down (out of service)"
    ),
    Column("frequency_hz", _FLOAT, "mean frequency of busy threads during the visit; NaN: idle or not answered"),
    Column("power_w", _FLOAT, "mean power during the visit; NaN: not answered"),
    Column("overhead_cycles", _FLOAT, "cycles that profiling itself took on the machine"),
)

PROCESSES = (
    Column("process", _INT, "one program seen on one visit; 0, 1, 2, …"),
    Column("visit", _INT, "the visit"),
    Column("application", _TEXT, "the job's name; [kernel] and [daemons] for work of the operating system"),
    Column("job", _INT, "its job; −1: none"),
    Column("residence", _INT, "the stay; −1: none"),
    Column("build", _INT, "build of its main binary; −1: none"),
    Column("stacks", _BOOL, "whether it answers with profiles that carry stacks"),
    Column("threads", _LONG, "threads at the time of the visit"),
    Column("cpu_s", _FLOAT, "CPU time during the visit, as the operating system counts"),
    Column("wall_s", _FLOAT, "threads' time, waiting included, during the visit"),
)

BUILDS = (
    Column("build", _INT, "one image built once; 0, 1, 2, …"),
    Column("build_id", _TEXT, "hexadecimal identifier that the image carries"),
    Column("image", _TEXT, "name of the image: program, library, kernel or module"),
    Column("kind", _TEXT, "program, library, kernel, module or generated"),
    Column("revision", _TEXT, "source revision"),
    Column("compiler", _TEXT, "compiler and its version"),
    Column("builder", _TEXT, "who built it"),
    Column("built_s", _FLOAT, "when, relative to the start of the horizon"),
)

RATES = (
    Column("collection", _TEXT, "fleet, or an application-specific profile"),
    Column("platform", _TEXT, "platform"),
    Column("event", _TEXT, "generic event"),
    Column("native", _TEXT, "event of the platform that stands for it"),
    Column("unit", _TEXT, "what is counted: events, bytes, nanoseconds, threads"),
    Column("period", _LONG, "events from one sample to the next"),
    Column("duty", _LONG, "length of a visit over the time for which the event was on"),
    Column("max_samples_per_s", _FLOAT, "highest rate that the overhead measured on benchmarks allows; NaN: no limit"),
)

RAW_SAMPLES = (
    Column("process", _INT, "the process, in `processes`"),
    Column("event", _TEXT, "generic event"),
    Column("build", _INT, "image that the address is in; −1: memory without an image"),
    Column("address", _LONG, "offset within the image; without an image, the address"),
    Column("stack", _INT, "callers, in `raw_stacks`; −1: no stack was taken"),
    Column("count", _LONG, "samples"),
)

RAW_STACKS = (
    Column("stack", _INT, "a stack of return addresses"),
    Column("depth", _INT, "0 is the function sampled, then its caller, …"),
    Column("build", _INT, "image that the address is in; −1: memory without an image"),
    Column("address", _LONG, "offset within the image"),
)

SYMBOLS = (
    Column("build", _INT, "image"),
    Column("start", _LONG, "first address of a source line's code"),
    Column("end", _LONG, "first address after it"),
    Column("function", _TEXT, "function"),
    Column("function_start", _LONG, "first address of the function"),
    Column("file", _TEXT, "source file"),
    Column("file_hash", _TEXT, "signature of the file's content in the repository"),
    Column("function_line", _INT, "line on which the function begins"),
    Column("line", _INT, "line"),
)

SOURCES = (
    Column("file", _TEXT, "source file"),
    Column("file_hash", _TEXT, "signature of its content"),
    Column("line", _INT, "1, 2, 3, …"),
    Column("text", _TEXT, "the line"),
)

SAMPLES = (
    Column("process", _INT, "the process, in `processes`"),
    Column("event", _TEXT, "generic event"),
    Column("location", _INT, "what was sampled, in `locations`"),
    Column("stack", _INT, "the sampled function and its callers, in `stacks`; −1: no stack was taken"),
    Column("count", _LONG, "samples; events = count × period, fleet = count × period × duty × weight"),
)

LOCATIONS = (
    Column("location", _INT, "one source line of one image; 0, 1, 2, …"),
    Column("build", _INT, "image; −1: none"),
    Column("image", _TEXT, "name of the image; [generated] without one"),
    Column("function", _TEXT, "function; [unknown] where no symbol covers the address"),
    Column("file", _TEXT, "source file; empty: unknown"),
    Column("file_hash", _TEXT, "signature of the file's content; empty: unknown"),
    Column("function_line", _INT, "line on which the function begins; 0: unknown"),
    Column("line", _INT, "line; 0: unknown"),
    Column("symbolised", _BOOL, "whether a symbol covers the address"),
)

STACKS = (
    Column("stack", _INT, "a call path"),
    Column("depth", _INT, "0 is the function sampled, then its caller, …"),
    Column("location", _INT, "in `locations`"),
)

FUNCTION_TRAITS = (
    Column("image", _TEXT, "image"),
    Column("function", _TEXT, "function"),
    Column("floating_point", _FLOAT, "share of floating-point instructions in its code, from the disassembled binary"),
)

TRUTH_FUNCTIONS = (
    Column("application", _TEXT, "job"),
    Column("datacentre", _TEXT, "data centre"),
    Column("platform", _TEXT, "platform at the time"),
    Column("build", _INT, "build of the main binary"),
    Column("image", _TEXT, "image of the function"),
    Column("function", _TEXT, "function"),
    Column("cycles", _FLOAT, "cycles over the horizon, profiled or not"),
    Column("instructions", _FLOAT, "instructions"),
    Column("l1_misses", _FLOAT, "first-level data misses"),
    Column("l2_misses", _FLOAT, "second-level data misses"),
    Column("llc_misses", _FLOAT, "last-level-cache misses"),
    Column("mispredictions", _FLOAT, "mispredicted branches"),
)

TRUTH_INCIDENTS = (
    Column("machine", _INT, "where"),
    Column("resource", _TEXT, "memory or clock"),
    Column("start_s", _FLOAT, "when it began, 0 if it was under way then"),
    Column("end_s", _FLOAT, "when it was over, the horizon's end at most"),
    Column("factor", _FLOAT, "by which memory latency was longer, or the highest clock lower"),
)

TRUTH_SHIFTS = (
    Column("job", _INT, "the job"),
    Column("start_s", _FLOAT, "from when on"),
    Column("factor", _FLOAT, "core CPI and memory accesses of all its instances relative to before"),
)

TRUTH_CPI = (
    Column("application", _TEXT, "job"),
    Column("platform", _TEXT, "platform at the time"),
    Column("cycles", _FLOAT, "cycles over the horizon"),
    Column("instructions", _FLOAT, "instructions over the horizon"),
)

ARMS = ("nowhere", "everywhere")
"""The counterfactual fleets: the feature on no machine, and on every machine."""

TABLES: dict[str, tuple[Column, ...]] = {
    "machines": MACHINES,
    "jobs": JOBS,
    "instances": INSTANCES,
    "counters": COUNTERS,
    "machine_windows": MACHINE_WINDOWS,
    "epochs": EPOCHS,
    "events": EVENTS,
    "switches": SWITCHES,
    "instance_epochs": INSTANCE_EPOCHS,
    "machine_epochs": MACHINE_EPOCHS,
    "rounds": ROUNDS,
    "requests": REQUESTS,
    "stay_requests": STAY_REQUESTS,
    "stay_unserved": STAY_UNSERVED,
    "unserved": UNSERVED,
    "servers": SERVER_COUNTS,
    "station_requests": STATION_REQUESTS,
    "station_cpu": STATION_CPU,
    "replays": REPLAYS,
    "cpu": CPU,
    "truth_jobs": TRUTH_JOBS,
    "truth_incidents": TRUTH_INCIDENTS,
    "truth_shifts": TRUTH_SHIFTS,
    "truth_requests": TRUTH_REQUESTS,
    "truth_cpu": CPU,
    "truth_station_requests": TRUTH_STATION_REQUESTS,
    "truth_machine": TRUTH_MACHINE,
    "truth_one_way": TRUTH_ONE_WAY,
    "service_counts": SERVICE_COUNTS,
    "service_log": SERVICE_LOG,
    "service_cpu": SERVICE_CPU,
    "benchmarks": BENCHMARKS,
    "truth_service": TRUTH_SERVICE,
    "truth_service_types": TRUTH_SERVICE_TYPES,
    "truth_miss_curve": TRUTH_MISS_CURVE,
    "truth_throughput": TRUTH_THROUGHPUT,
    "profile_machines": PROFILE_MACHINES,
    "monitor": MONITOR,
    "visits": VISITS,
    "processes": PROCESSES,
    "builds": BUILDS,
    "rates": RATES,
    "raw_samples": RAW_SAMPLES,
    "raw_stacks": RAW_STACKS,
    "symbols": SYMBOLS,
    "sources": SOURCES,
    "samples": SAMPLES,
    "locations": LOCATIONS,
    "stacks": STACKS,
    "function_traits": FUNCTION_TRAITS,
    "truth_functions": TRUTH_FUNCTIONS,
    "truth_cpi": TRUTH_CPI,
    **{f"truth_{arm}_counters": COUNTERS for arm in ARMS},
    **{f"truth_{arm}_machine_windows": MACHINE_WINDOWS for arm in ARMS},
    **{f"truth_{arm}_epochs": EPOCHS for arm in ARMS},
    **{f"truth_trial_{arm}_counters": COUNTERS for arm in ARMS},
    **{f"truth_trial_{arm}_machine_windows": MACHINE_WINDOWS for arm in ARMS},
    **{f"truth_trial_{arm}_epochs": EPOCHS for arm in ARMS},
}


SCHEMAS: Mapping[str, pa.Schema] = {
    table: pa.schema([pa.field(column.name, column.type, False, {"meaning": column.meaning}) for column in columns])
    for table, columns in TABLES.items()
}
"""The Arrow schema of each table, meanings as field metadata."""

_COUNTERS, _WINDOWS, _EPOCHS = ("residence", "window"), ("machine", "window"), ("epoch",)

KEYS: dict[str, tuple[str, ...]] = {
    "machines": ("machine",),
    "jobs": ("job",),
    "instances": ("residence",),
    "counters": _COUNTERS,
    "machine_windows": _WINDOWS,
    "epochs": _EPOCHS,
    "switches": ("machine", "period"),
    "instance_epochs": ("residence", "epoch"),
    "machine_epochs": ("machine", "epoch"),
    "rounds": ("round",),
    "requests": ("request",),
    "stay_requests": ("residence", "request"),
    "truth_jobs": ("job",),
    "profile_machines": ("machine",),
    "monitor": ("machine", "start_s"),
    "visits": ("visit",),
    "processes": ("process",),
    "builds": ("build",),
    "rates": ("collection", "platform", "event"),
    "locations": ("location",),
    **{f"truth_{trial}{arm}_counters": _COUNTERS for trial in ("", "trial_") for arm in ARMS},
    **{f"truth_{trial}{arm}_machine_windows": _WINDOWS for trial in ("", "trial_") for arm in ARMS},
    **{f"truth_{trial}{arm}_epochs": _EPOCHS for trial in ("", "trial_") for arm in ARMS},
}
"""Columns whose values together a row of the table has alone."""

REFERENCES: dict[tuple[str, str], str] = {
    ("instances", "machine"): "machines",
    ("instances", "job"): "jobs",
    ("counters", "residence"): "instances",
    ("machine_windows", "machine"): "machines",
    ("stay_requests", "residence"): "instances",
    ("stay_unserved", "residence"): "instances",
}
"""Table and column whose values are of the column of that name in another table."""
