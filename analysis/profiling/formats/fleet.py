"""Files of machines that were drawn at random, as the profile of the fleet that they were drawn from."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling.fleet_samples import FLEET
from analysis.profiling.formats.foreign import ForeignProfile
from analysis.profiling.storage import TAKEN
from models.arrays import Floats, Ints
from models.errors import WscError

LEAST = 2
"""Files at least, and machines of the fleet for each of them: half of a fleet or more is no small sample of it."""
NOBODY = "[unknown]"
"""Application of a file that names none."""
_RATE = ["platform", "event"]
_OF_VISITS = ["visit", "collection", "platform"]
_LENGTH_TOLERANCE, _SPAN_TOLERANCE = 0.01, 0.05
"""By how much equal lengths may differ; and the times from first to last samples of equal lengths."""
_ROUNDING = 0.005
"""By how much a whole weight may differ from the wanted one where lengths differ."""
SHORTEST_S = 1e-3
"""Least length of a visit beside longer ones: what took less holds no machine's samples of a time."""
_LEVELS = ("inuse",)
"""Beginnings of events that are levels, not counts over the visit's time."""


class SampleError(WscError):
    """Files that are no small random sample of so many machines."""


class LengthError(SampleError):
    """Files of which nobody knows how much of a machine's time each stands for."""


def drawn(
    tables: Mapping[str, pd.DataFrame], machines: int, *, spans: bool = False, equal: bool = False
) -> dict[str, pd.DataFrame]:
    """Return the tables of files as one collection, whose visits were drawn at random from a fleet.

    Each visit stands for the machines of the fleet over those visited, rounded to a whole number. Where visits differ
    in length, weights are inverse to it: every machine counts by its events per second, and values are those of the
    fleet in the longest visit's time, or a multiple of it that keeps the whole weights right within 0.5%. So a share is
    the ratio of two sums of rates over machines drawn alike, as a ratio estimate needs them (Cochran 1977, section
    6.3). Lengths that differ by at most 1% are taken as equal. Events that the files sampled with unlike periods get
    the greatest common divisor of these, so that values stay exact.

    Parameters
    ----------
    tables : as `to_tables` returns them, a collection for each file; samples and stacks may be left out
    machines : of the fleet, those drawn included
    spans : lengths are only the times from first to last samples, which tell nothing but that lengths are equal where
        they differ by at most 5%
    equal : all visits are weighted as if equally long, whatever the files say; see `unlike_lengths`

    Returns
    -------
    dict
        The same tables, of which visits, processes, rates and samples are changed.

    Raises
    ------
    SampleError
        If fewer than two machines were drawn, or more than half of the fleet.
    LengthError
        If only some lengths are known, spans differ, or lengths do and an event is a level such as `inuse_space`.

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import Frame, Measure, Sample
    >>> from analysis.profiling.formats.tables import to_tables
    >>> first, second = (
    ...     ForeignProfile((Measure("cpu", "ns", ns),), (Frame("f"),), (Sample((0,), (60,)),)) for ns in (10, 15)
    ... )
    >>> tables = drawn(to_tables([first, second]), machines=40)
    >>> tables["visits"][["collection", "weight"]].values.tolist()
    [['fleet', 20], ['fleet', 20]]
    >>> tables["rates"]["period"].tolist(), tables["samples"][["count", "taken"]].values.tolist()
    ([5], [[12, 6], [12, 4]])
    """
    visits, rates = tables["visits"], tables["rates"]
    weight = _weights(visits, rates, _weight(len(visits), machines), spans=spans, equal=equal)
    processes = tables["processes"].merge(visits[_OF_VISITS], on="visit", how="left")
    nameless = processes["application"] == processes["collection"]
    weighted = {
        **tables,
        "visits": visits.assign(collection=FLEET, weight=weight),
        "processes": tables["processes"].assign(application=processes["application"].mask(nameless, NOBODY)),
        "rates": _common(rates),
    }
    if "samples" in tables:
        weighted["samples"] = _recounted(tables["samples"], Recount.of_files(tables))
    return weighted


@dataclass(frozen=True, slots=True)
class Recount:
    """How many times the common period goes into the period of a process's file."""

    times: Mapping[str, Ints]
    """By event, an array by process."""

    @classmethod
    def of_files(cls, tables: Mapping[str, pd.DataFrame]) -> "Recount":
        """Return that of the tables of files, as `to_tables` returns them; samples are not looked at."""
        processes, rates = tables["processes"], tables["rates"]
        places = processes[["process", "visit"]].merge(tables["visits"][_OF_VISITS], on="visit", how="left")
        size = int(processes["process"].max()) + 1 if len(processes) else 0
        known = rates.assign(times=rates["period"] // rates.groupby(_RATE)["period"].transform(_divisor))
        times = {}
        for event, rate in known.groupby("event", sort=False):
            rows = places.merge(rate[["collection", "platform", "times"]], on=["collection", "platform"])
            times[str(event)] = np.ones(size, np.int64)
            times[str(event)][rows["process"]] = rows["times"]
        return cls(times)

    def of(self, event: str, process: Ints) -> Ints:
        """Return that of samples of an event."""
        return self.times[event][process]


def unlike_lengths(profiles: Sequence[ForeignProfile]) -> tuple[float, float] | None:
    """Return the shortest and the longest length that files say, in seconds, where these differ by over 1%.

    Times from first to last samples say no length.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from analysis.profiling.formats.foreign import Frame, Measure, Sample
    >>> profile = ForeignProfile((Measure("cpu"),), (Frame("f"),), (Sample((0,), (60,)),))
    >>> unlike_lengths([profile, replace(profile, length_s=10.0), replace(profile, length_s=100.0)])
    (10.0, 100.0)
    """
    stated_s = [profile.length_s for profile in profiles if profile.length_s > 0 and not profile.span]
    least, most = min(stated_s, default=0.0), max(stated_s, default=0.0)
    return (least, most) if most - least > _LENGTH_TOLERANCE * most else None


def too_short(profiles: Sequence[ForeignProfile]) -> list[tuple[str, float]]:
    """Return the names and lengths in seconds of files that say less than a millisecond while others say more.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from analysis.profiling.formats.foreign import Frame, Measure, Sample
    >>> profile = ForeignProfile((Measure("cpu"),), (Frame("f"),), (Sample((0,), (60,)),))
    >>> too_short([replace(profile, length_s=1e-6), replace(profile, length_s=10.0)])
    [('profile', 1e-06)]
    """
    unlike_s = unlike_lengths(profiles)
    if unlike_s is None or unlike_s[1] < SHORTEST_S:
        return []
    stated = [profile for profile in profiles if not profile.span]
    return [(profile.name, profile.length_s) for profile in stated if 0 < profile.length_s < SHORTEST_S]


def levels(profiles: Sequence[ForeignProfile]) -> list[str]:
    """Return the events that are levels, such as `inuse_space`, and no counts over a time.

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import Measure
    >>> levels([ForeignProfile((Measure("inuse_space"), Measure("alloc_space")))])
    ['inuse_space']
    """
    events = {measure.event for profile in profiles for measure in profile.measures}
    return sorted(event for event in events if event.startswith(_LEVELS))


def _weight(files: int, machines: int) -> int:
    if files < LEAST:
        raise SampleError(f"a sample of a fleet needs profiles of at least {LEAST} machines, got {files}")
    if machines < LEAST * files:
        least = f"should be at least {LEAST * files}, twice the {files} files: intervals take these for a small sample"
        raise SampleError(f"{least} of all machines; leave it out to ask of these machines alone, got {machines}")
    return round(machines / files)


def _weights(visits: pd.DataFrame, rates: pd.DataFrame, machines: int, *, spans: bool, equal: bool) -> Ints:
    """Return (visits,) whole weights: machines that each stands for, times a common time over the visit's length."""
    length_s: Floats = visits["length_s"].to_numpy(np.float64)
    least, most = float(length_s.min()), float(length_s.max())
    if equal or most - least <= (_SPAN_TOLERANCE if spans else _LENGTH_TOLERANCE) * most:
        return np.full(len(visits), machines, dtype=np.int64)
    _refuse_unknown(length_s, rates, spans=spans)
    wanted = machines * most / length_s
    for times in itertools.count(1):
        weight = np.round(times * wanted)
        if (np.abs(weight / (times * wanted) - 1.0) <= _ROUNDING).all():
            break
    return weight.astype(np.int64)


def _refuse_unknown(length_s: Floats, rates: pd.DataFrame, *, spans: bool) -> None:
    """Refuse lengths that differ and cannot be weighed by."""
    between = f"{length_s.min():g} s to {length_s.max():g} s"
    if spans:
        problem = f"first and last samples are {between} apart, which does not say how long each took"
        raise LengthError(problem)
    silent = int((length_s <= 0).sum())
    if silent:
        does = "does not say how long it took" if silent == 1 else "do not say how long they took"
        raise LengthError(f"{silent} of {len(length_s)} profiles {does}")
    levels = sorted({event for event in rates["event"].astype(str) if event.startswith(_LEVELS)})
    if levels:
        raise LengthError(f"{levels[0]} is a level, not a count over time, and lengths are {between}")


def _common(rates: pd.DataFrame) -> pd.DataFrame:
    """Return one rate for each event and platform, of the period that all files' periods are multiples of."""
    period = rates.groupby(_RATE, sort=False)["period"].agg(_divisor).reset_index()
    common = rates.drop_duplicates(_RATE).drop(columns="period").merge(period, on=_RATE, how="left")
    return common.assign(collection=FLEET)[list(rates.columns)].astype(rates.dtypes.to_dict())


def _recounted(samples: pd.DataFrame, recount: Recount) -> pd.DataFrame:
    """Return samples whose counts are of the common period; `taken` keeps how many samples were taken."""
    process = samples["process"].to_numpy()
    times = np.ones(len(samples), np.int64)
    for event, rows in samples.groupby("event", sort=False).indices.items():
        times[rows] = recount.of(str(event), process[rows])
    if TAKEN not in samples and bool((times == 1).all()):
        return samples
    taken = samples[TAKEN] if TAKEN in samples else samples["count"]
    return samples.assign(**{"count": samples["count"] * times, TAKEN: taken})


def _divisor(periods: "pd.Series[int]") -> int:
    return int(np.gcd.reduce(periods.to_numpy(np.int64)))
