"""Small traces of clusters, written in the public formats from plain rows, and what should come of them."""

import csv
import gzip
import io
import json
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Row:
    """One measurement of a task; CPU use in CPUs."""

    start_s: int
    end_s: int
    job: str
    index: int
    machine: str
    cpus: float | None
    cpi: float | None


def rows(hours=3, machines=6, jobs=2, seed=1):
    """Tasks of some jobs on machines, measured every five minutes, some without CPI, one that moves."""
    rng = random.Random(seed)
    made = []
    for start in range(600, 600 + hours * 3600, 300):
        for index in range(machines):
            machine = (index + 1) % machines if index == 2 and start > 5000 else index
            cpi = None if rng.random() < 0.1 else round(rng.uniform(0.8, 3.0), 4)
            use = round(rng.uniform(0.01, 0.6), 5)
            made.append(Row(start, start + 300, str(6001 + index % jobs), index, str(41 + machine), use, cpi))
    return made


def google2011(given, fields=20, names=()):
    """Text of task_usage: no line of names, microseconds, empty cells for what is missing."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    if names:
        write(names)
    for row in given:
        cells = [""] * fields
        cells[:6] = [row.start_s * 10**6, row.end_s * 10**6, row.job, row.index, row.machine, _cell(row.cpus)]
        cells[15] = _cell(row.cpi)
        write(cells)
    return text.getvalue()


def task_events(requests):
    """Text of task_events from (job, index) to CPUs."""
    lines = [f"0,,{job},{index},,0,u,2,9,{_cell(cpus)},0.1,0.001,0" for (job, index), cpus in requests.items()]
    return "\n".join(lines) + "\n"


def google2019_json(given, **more):
    """Text of instance_usage as it is published: JSON lines, 64-bit numbers as text, no member for what is missing."""
    return "".join(json.dumps(_without_none(_object(row)) | more) + "\n" for row in given)


def google2019_csv(given):
    """Text of instance_usage as a database exports it: members of members by a dot."""
    names = ("start_time", "end_time", "collection_id", "instance_index", "machine_id", "collection_type")
    names += ("average_usage.cpus", "average_usage.memory", "cycles_per_instruction")
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(names)
    for row in given:
        times = [row.start_s * 10**6, row.end_s * 10**6]
        write([*times, row.job, row.index, row.machine, 0, _cell(row.cpus), 0.1, _cell(row.cpi)])
    return text.getvalue()


def google2019_parquet(given, path, **options):
    """Write instance_usage with members of members as they are."""
    made = [_object(row) | {"start_time": row.start_s * 10**6, "end_time": row.end_s * 10**6} for row in given]
    pq.write_table(pa.Table.from_pylist(made), path, **options)


def alibaba2018(given, requests):
    """Texts of container_usage and container_meta: a percentage of the request every ten seconds."""
    usage = "".join(
        f"c_{row.index},m_{row.machine},{row.start_s},{_cell(row.cpus)},30,{_cell(row.cpi)},,,0.1,0.2,4\n"
        for row in given
    )
    apps = {row.index: row.job for row in given}
    meta = "".join(
        f"c_{index},m_1,0,app_{apps[index]},started,{int(cores * 100)},800,3.1\n" for index, cores in requests.items()
    )
    return usage, meta


def every_ten_seconds(given):
    """The rows as samples of ten seconds, of use in percent."""
    return [
        replace(row, end_s=row.start_s + 10, cpus=None if row.cpus is None else round(row.cpus * 100)) for row in given
    ]


def zipped(text):
    return gzip.compress(text.encode())


def expected(given, period_s=3600, request=None):
    """Observations by (period, job, machine, instance): weight, value, present_s, cpu_s, in exact arithmetic."""
    sums = defaultdict(lambda: [Fraction(0)] * 4)
    for row in given:
        length = row.end_s - row.start_s
        cpu_s = Fraction(row.cpus or 0) * length
        counted = cpu_s if row.cpi else 0
        work = cpu_s / Fraction(row.cpi) if row.cpi else 0
        key = (row.start_s // period_s * period_s, row.job, row.machine, f"{row.job}/{row.index}")
        sums[key] = [a + b for a, b in zip(sums[key], (length, cpu_s, counted, work), strict=True)]
    made = {}
    for key, (present_s, cpu_s, counted, work) in sums.items():
        weight = request[key[1], int(key[3].rpartition("/")[2])] if request else float(cpu_s / present_s)
        if counted:
            made[key] = (weight, float(work / counted), float(present_s), float(cpu_s))
    return made


def _object(row):
    return {
        "start_time": str(row.start_s * 10**6),
        "end_time": str(row.end_s * 10**6),
        "collection_id": row.job,
        "instance_index": row.index,
        "machine_id": row.machine,
        "collection_type": 0,
        "average_usage": None if row.cpus is None else {"cpus": row.cpus, "memory": 0.01},
        "cycles_per_instruction": row.cpi,
        "cpu_usage_distribution": [0.1, 0.2],
    }


def _without_none(given):
    return {name: value for name, value in given.items() if value is not None}


def _cell(value):
    return "" if value is None else repr(value)


@dataclass(frozen=True)
class Count:
    """What a container did on one logical CPU since the time stamp before."""

    at_s: int
    node: str
    container: str
    cpu: int
    instructions: int
    cycles: int
    reference: int
    misses: int


NODES = {f"n{at}": ("skylake", 2.5) if at < 4 else ("cascadelake", 2.6) for at in range(8)}
"""Platform and GHz of the nodes of `counts`."""
APPS = {"search": ("shop", "biz"), "helper": ("shop", "other"), "batch": ("Batch", "Batch-Share"), "lost": ("", "")}
BESIDE = 1.25
"""How many times the cycles per instruction of the shop's search beside a batch job are those without one."""


def counts(stamps=6, step_s=1200, seed=1):
    """Counters of containers on nodes, several CPUs at a time: batch jobs run on every second node."""
    rng = random.Random(seed)
    made = []
    for at_s in range(0, stamps * step_s, step_s):
        for number, node in enumerate(NODES):
            for app in APPS:
                if app == "batch" and number % 2:
                    continue
                cpi = {"search": 1.5 * (1 if number % 2 else BESIDE), "helper": 1.0, "batch": 0.8, "lost": 2.0}[app]
                for cpu in range(3 if app == "batch" else 2):
                    reference = rng.randrange(200_000_000, 900_000_000)
                    cycles = int(reference * rng.uniform(1.0, 1.2))
                    instructions = int(cycles / cpi * rng.uniform(0.98, 1.02))
                    misses = int(instructions * rng.uniform(0.004, 0.012))
                    made.append(Count(at_s, node, f"{app}-{node}", cpu, instructions, cycles, reference, misses))
    return made


def amtrace(given, apps=None):
    """Texts of core_pmu, container_meta and host_meta, without lines of names."""
    core = "".join(
        f"{row.at_s},{row.node},{row.container},{row.cpu},{row.cpu},0,{row.instructions},{row.cycles},{row.reference},"
        f"{row.misses}\n"
        for row in given
    )
    meta = dict.fromkeys((row.node, row.container) for row in given)
    app, role = ({name: both[at] for name, both in (apps or APPS).items()} for at in (0, 1))
    containers = "".join(
        f"{node},{name},pod-{node},CPUShare,{app[kind]},{app[kind]},{role[kind]},0.04,0.003,0.04,0.003\n"
        if app[kind := name.partition("-")[0]]
        else f"{node},{name},,,,,,,,,\n"
        for node, name in meta
    )
    hosts = "".join(f"{node},96,machine-1,{platform},{ghz},2\n" for node, (platform, ghz) in NODES.items())
    return core, containers, hosts


def counted(given, period_s=3600, clocked=False):
    """Observations by (period, job, machine, instance): value, cpu_s, mean clock in Hz, misses, exactly."""
    sums = defaultdict(lambda: [0] * 4)
    for row in given:
        app, role = APPS[row.container.partition("-")[0]]
        key = (row.at_s // period_s * period_s, f"{app}/{role}", row.node, row.container)
        new = (row.instructions, row.cycles, row.reference, row.misses)
        if app:
            sums[key] = [a + b for a, b in zip(sums[key], new, strict=True)]
    made = {}
    for key, (instructions, cycles, reference, misses) in sums.items():
        hertz = Fraction(str(NODES[key[2]][1])) * 10**9
        value = Fraction(instructions, reference) * hertz if clocked else Fraction(instructions, cycles)
        cpu_s = reference / hertz if clocked else Fraction(reference, 10**9)
        made[key] = tuple(map(float, (value, cpu_s, cycles, Fraction(misses, instructions))))
        made[key] += (float(Fraction(cycles, reference) * hertz), float(cpu_s / period_s))
    return made
