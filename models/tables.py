"""The columns of every table, said once: name with unit, type, meaning.

Writers, readers, checks and the documentation all use this list. Tables whose name begins with ``truth_`` hold what
no real fleet could know; analyses never read them.
"""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name with unit, its Arrow type and what it means."""

    name: str
    type: pa.DataType
    meaning: str


_INT, _FLOAT, _TEXT, _BOOL = pa.int32(), pa.float64(), pa.string(), pa.bool_()

MACHINES = (
    Column("machine", _INT, "0, 1, 2, …"),
    Column("rack", _INT, "rack it stands in"),
    Column("power_domain", _INT, "power domain of the rack"),
    Column("platform", _TEXT, "platform before the feature"),
    Column("vcpus", _INT, "hardware threads, the CPU capacity that quotas may fill"),
    Column("memory_bytes", _FLOAT, "memory capacity"),
    Column("feature", _BOOL, "whether the recorded fleet has the feature here at the end of the horizon"),
    Column("feature_from_s", _FLOAT, "when it was switched on here; NaN: never"),
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
    Column("mean_frequency_hz", _FLOAT, "cycles over CPU time"),
    Column("requests", _FLOAT, "user-level operations completed"),
)

MACHINE_WINDOWS = (
    Column("machine", _INT, "machine"),
    Column("window", _TEXT, "name of the counting window"),
    Column("cycles", _FLOAT, "cycles of all its instances"),
    Column("instructions", _FLOAT, "instructions of all its instances"),
    Column("llc_misses", _FLOAT, "last-level-cache misses of all its instances"),
    Column("cpu_s", _FLOAT, "CPU time of all its instances"),
    Column("energy_j", _FLOAT, "energy of the machine, idle power included"),
    Column("capped_share", _FLOAT, "share of epochs in which the power cap lowered the P-state"),
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
    Column("capped_share", _FLOAT, "share of machines whose power cap lowered the P-state"),
    Column("residual_max", _FLOAT, "largest relative residual of the interference fixed point on any machine"),
)

EVENTS = (
    Column("time_s", _FLOAT, "when"),
    Column("kind", _TEXT, "arrival, exit, restart, drain, drain_end, failure, repair, preemption, rollout"),
    Column("machine", _INT, "machine concerned; −1: none"),
    Column("instance", _INT, "instance concerned; −1: none"),
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
    Column("margin", _FLOAT, "relative margin realised"),
    Column("change", _FLOAT, "relative change estimated over the covered jobs"),
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

REPLAYS = (
    Column("servers", _INT, "servers that the same load was served with"),
    Column("request", pa.int64(), "the request, as in `requests`"),
    Column("arrival_s", _FLOAT, "when it was sent, by the observer's clock"),
    Column("departure_s", _FLOAT, "when its answer was there, by the observer's clock"),
)

CPU = (
    Column("start_s", _FLOAT, "start of the counting interval"),
    Column("end_s", _FLOAT, "end of the counting interval"),
    Column("utilisation", _FLOAT, "busy servers over all servers, work that is in no request log included"),
)

TRUTH_REQUESTS = (
    Column("request", pa.int64(), "the request, as in `requests`; −1: work that is in no request log"),
    Column("arrival_s", _FLOAT, "when it entered the queue"),
    Column("start_s", _FLOAT, "when a server first took it"),
    Column("departure_s", _FLOAT, "when its service was complete"),
    Column("demand_s", _FLOAT, "service demand on a server of speed 1"),
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
    Column("response_time_s", _FLOAT, "mean response time with requests of this type alone, ten per second"),
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
    "instance_epochs": INSTANCE_EPOCHS,
    "machine_epochs": MACHINE_EPOCHS,
    "rounds": ROUNDS,
    "requests": REQUESTS,
    "replays": REPLAYS,
    "cpu": CPU,
    "truth_jobs": TRUTH_JOBS,
    "truth_requests": TRUTH_REQUESTS,
    "truth_cpu": CPU,
    "service_counts": SERVICE_COUNTS,
    "service_log": SERVICE_LOG,
    "service_cpu": SERVICE_CPU,
    "benchmarks": BENCHMARKS,
    "truth_service": TRUTH_SERVICE,
    "truth_service_types": TRUTH_SERVICE_TYPES,
    "truth_miss_curve": TRUTH_MISS_CURVE,
    "truth_throughput": TRUTH_THROUGHPUT,
    **{f"truth_{arm}_counters": COUNTERS for arm in ARMS},
    **{f"truth_{arm}_machine_windows": MACHINE_WINDOWS for arm in ARMS},
    **{f"truth_{arm}_epochs": EPOCHS for arm in ARMS},
}


def schema(table: str) -> pa.Schema:
    """Return the Arrow schema of a table, meanings as field metadata.

    Parameters
    ----------
    table : a name in `TABLES`

    Raises
    ------
    KeyError
        If there is no such table.

    Examples
    --------
    >>> schema("jobs").names
    ['job', 'name', 'latency_critical', 'instances', 'quota_vcpu']
    """
    return pa.schema(
        [pa.field(column.name, column.type, False, {"meaning": column.meaning}) for column in TABLES[table]]
    )
