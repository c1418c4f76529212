"""Profiles of machines drawn at random on two days: forty functions under four others, one of them perhaps grown."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from scenarios.profiling.files import import_files
from tests.helpers.foreign_profiles import profile_of

WEIGHTS = np.repeat([8.0, 4.0, 2.0, 1.0], 10)
GROWN = 12
"""Function that grows; it is called by `mid0`."""


def write(
    folder: Path,
    rng: np.random.Generator,
    factor: float = 1.0,
    machines: int | None = 400,
    *,
    grown: str = "",
    unnamed: int = 0,
    renamed: str = "",
    images: str = "aa",
    heavier: float = 1.0,
    samples: int = 500,
    platforms: Sequence[str] = (),
    grown_on: Sequence[str] = (),
    uneven: str = "",
) -> Path:
    """Write two days of twelve machines each; from the second on one function costs `factor` times as much.

    Parameters
    ----------
    grown : another name of that function
    unnamed : machines whose files have no symbols of image `a` on the first day
    renamed : what `mid0` is called on the second day
    images : of the functions and of their callers; `a` is the one that may have no symbols
    heavier : times as much that all functions which `mid0` calls cost on the second day
    samples : of a machine on a day
    platforms : of the twelve machines; none: not known
    grown_on : platforms on which the function grows; none: on all
    uneven : platform on which it costs 1 or 3 times as much, by chance
    """
    files, names = [], [f"f{i}" for i in range(len(WEIGHTS))]
    names[GROWN] = grown or names[GROWN]
    for day, machine in itertools.product(range(2), range(12)):
        cost = WEIGHTS * rng.lognormal(0.0, 0.15, len(WEIGHTS))
        here = not grown_on or platforms[machine] in grown_on
        cost[GROWN] *= factor if day and here else 1.0
        cost[GROWN] *= rng.choice([1.0, 3.0]) if uneven and platforms[machine] == uneven else 1.0
        cost[::4] *= heavier if day else 1.0
        seen = rng.multinomial(samples, cost / cost.sum())
        known = day > 0 or machine >= unnamed
        callers = [renamed if renamed and day else "mid0", "mid1", "mid2", "mid3"]
        library, program = (known or image != "a" for image in images)
        stacks = [
            (
                (
                    Frame(names[i] * library, images[0]),
                    *(Frame(name * program, images[1]) for name in (callers[i % 4], "main")),
                ),
                (k, 10 * k),
            )
            for i, k in enumerate(seen.tolist())
            if k
        ]
        profile = profile_of([Measure("samples"), Measure("cpu", "nanoseconds")], stacks)
        files.append(folder / f"{day}-{machine:02}.pb.gz")
        files[-1].write_bytes(write_pprof(replace(profile, start_s=(20_000 + day) * 86400.0 + 60.0 * machine)))
    import_files(files, folder / "made", machines=machines)
    if platforms:
        _put_on(platforms, folder / "made")
    return folder / "made"


def _put_on(platforms: Sequence[str], folder: Path) -> None:
    """Say of each machine's visits on which platform it is; rates are the same on all."""
    visits, rates = (pq.read_table(folder / f"{name}.parquet") for name in ("visits", "rates"))
    machine = np.round(visits["start_s"].to_numpy() % 86400.0 / 60.0).astype(int)
    visits = _with_platform(visits, [platforms[at] for at in machine])
    rates = pa.concat_tables([_with_platform(rates, [name] * len(rates)) for name in sorted(set(platforms))])
    for name, table in (("visits", visits), ("rates", rates)):
        pq.write_table(table, folder / f"{name}.parquet")


def _with_platform(table: pa.Table, names: Sequence[str]) -> pa.Table:
    place = table.schema.get_field_index("platform")
    column = table.schema.field(place)
    return table.set_column(place, column, pa.array(names, pa.string()).cast(column.type))
