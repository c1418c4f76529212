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
