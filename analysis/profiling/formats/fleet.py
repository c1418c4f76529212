"""Files of machines that were drawn at random, as the profile of the fleet that they were drawn from."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.profiling.asking import FLEET
from analysis.profiling.formats.foreign import Profile
from analysis.profiling.storage import TAKEN
from analysis.statistics import Ints

LEAST = 2
"""Files at least, and machines of the fleet for each of them: half of a fleet or more is no small sample of it."""
NOBODY = "[unknown]"
"""Application of a file that names none."""
_RATE = ["platform", "event"]


class SampleError(ValueError):
    """Files that are no small random sample of so many machines."""


def drawn(tables: Mapping[str, pd.DataFrame], machines: int) -> dict[str, pd.DataFrame]:
    """Return the tables of files as one collection, whose visits were drawn at random from a fleet.

    Each visit stands for the machines of the fleet over those visited, rounded to a whole number. Events that the
    files sampled with unlike periods get the greatest common divisor of these, so that values stay exact.

    Parameters
    ----------
    tables : as `to_tables` returns them, a collection for each file
    machines : of the fleet, those drawn included

    Returns
    -------
    dict
        The same tables, of which visits, processes, rates and samples are changed.

    Raises
    ------
    SampleError
        If fewer than two machines were drawn, or more than half of the fleet.

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import Frame, Measure, made
    >>> from analysis.profiling.formats.tables import to_tables
    >>> one, other = (made([Measure("cpu", "ns", period)], [((Frame("f"),), (60,))]) for period in (10, 15))
    >>> tables = drawn(to_tables([one, other]), machines=40)
    >>> tables["visits"][["collection", "weight"]].values.tolist()
    [['fleet', 20], ['fleet', 20]]
    >>> tables["rates"]["period"].tolist(), tables["samples"][["count", "taken"]].values.tolist()
    ([5], [[12, 6], [12, 4]])
    """
    visits, rates = tables["visits"], tables["rates"]
    weight = _weight(len(visits), machines)
    processes = tables["processes"].merge(visits[["visit", "collection", "platform"]], on="visit", how="left")
    nameless = processes["application"] == processes["collection"]
    return {
        **tables,
        "visits": visits.assign(collection=FLEET, weight=np.int64(weight)),
        "processes": tables["processes"].assign(application=processes["application"].mask(nameless, NOBODY)),
        "rates": _common(rates),
        "samples": _recounted(tables["samples"], processes, rates),
    }


def repeated(profiles: Sequence[Profile]) -> list[tuple[str, str]]:
    """Return the names of files that hold the very samples of an earlier one, each with that one's name.

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import Frame, Measure, made
    >>> one = made([Measure("cpu")], [((Frame("f"),), (60,))])
    >>> repeated([one, one])
    [('profile', 'profile')]
    """
    first: dict[object, str] = {}
    found = []
    for profile in profiles:
        held = (profile.measures, profile.frames, profile.samples)
        if profile.samples and held in first:
            found.append((profile.name, first[held]))
        first.setdefault(held, profile.name)
    return found


def _weight(files: int, machines: int) -> int:
    if files < LEAST:
        raise SampleError(f"a sample of a fleet needs profiles of at least {LEAST} machines, got {files}")
    if machines < LEAST * files:
        problem = f"{files} profiles are a small sample of at least {LEAST * files} machines, got {machines}"
        raise SampleError(f"{problem}; of fewer, they are asked as they are")
    return round(machines / files)


def _common(rates: pd.DataFrame) -> pd.DataFrame:
    """Return one rate for each event and platform, of the period that all files' periods are multiples of."""
    period = rates.groupby(_RATE, sort=False)["period"].agg(_divisor).reset_index()
    kept = rates.drop_duplicates(_RATE).drop(columns="period").merge(period, on=_RATE, how="left")
    return kept.assign(collection=FLEET)[list(rates.columns)].astype(rates.dtypes.to_dict())


def _recounted(samples: pd.DataFrame, processes: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """Return samples whose counts are of the common period; `taken` keeps how many samples were taken."""
    known = rates.assign(times=rates["period"] // rates.groupby(_RATE)["period"].transform(_divisor))
    origin = samples.merge(processes[["process", "collection", "platform"]], on="process", how="left")
    found = origin.merge(known[["collection", *_RATE, "times"]], on=["collection", *_RATE], how="left")
    times: Ints = found["times"].to_numpy(np.int64)
    if TAKEN not in samples and bool((times == 1).all()):
        return samples
    taken = samples[TAKEN] if TAKEN in samples else samples["count"]
    return samples.assign(**{"count": samples["count"] * times, TAKEN: taken})


def _divisor(periods: "pd.Series[int]") -> int:
    return int(np.gcd.reduce(periods.to_numpy(np.int64)))
