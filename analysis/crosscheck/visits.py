"""Were the profiler's visits where and when they say? Their rounds, and the stays that they found on their machines."""

import numpy as np
import pandas as pd

from analysis.crosscheck.check import Check

_PAIR = ["visit", "residence"]


def rounds(visits: pd.DataFrame, length_s: float, horizon_s: float, per_round: float) -> Check:
    """Return whether each round of the collector has its visits, each machine once at most, within the horizon.

    Parameters
    ----------
    visits : machine, start_s, length_s; of one collection that looks at all machines
    length_s : of a round; the last one may be cut short by the horizon's end
    horizon_s : until when there are rounds
    per_round : machines over the `one_in` of the collector: visits of a round are that, rounded up or down

    Returns
    -------
    Check
        ``profile_rounds``: rounds that are as they should be, and all, those outside the horizon included.

    Examples
    --------
    >>> visits = pd.DataFrame({"machine": [0, 1], "start_s": [0.0, 4200.0], "length_s": 300.0})
    >>> rounds(visits, 3600.0, 7200.0, 1.0).holds
    True
    >>> made = rounds(visits.assign(start_s=visits["start_s"] + 3600.0), 3600.0, 7200.0, 1.0)
    >>> made.left, made.right
    (1.0, 3.0)
    """
    start_s, end_s = visits["start_s"], visits["start_s"] + visits["length_s"]
    number = np.floor(start_s / length_s).rename("round")
    every = pd.RangeIndex(round(np.ceil(horizon_s / length_s)))
    by_round = visits["machine"].groupby(number)
    count = by_round.size().reindex(every, fill_value=0)
    once = by_round.nunique().reindex(every, fill_value=0) == count
    outside = pd.Series((start_s < 0) | (end_s > horizon_s)).groupby(number).any()
    sound = count.between(np.floor(per_round), np.ceil(per_round)) & once & ~outside.reindex(every, fill_value=False)
    return Check("profile_rounds", float(sound.sum()), float(len(count.index.union(outside.index))), 0.0)


def residents(visits: pd.DataFrame, processes: pd.DataFrame, instances: pd.DataFrame) -> Check:
    """Return whether visits that answered found just the stays that were on their machines at the time.

    Parameters
    ----------
    visits : visit, collection, machine, start_s, status; of all collections
    processes : visit, residence (below 0: of no stay)
    instances : residence, machine, start_s, end_s

    Returns
    -------
    Check
        ``profile_residents``: pairs of a visit and a stay that both sides have, and those of either. A stay that was
        there and was not found counts for the fleet's own collection alone, as others may look for some jobs only.

    Examples
    --------
    >>> visits = pd.DataFrame({"visit": [0], "collection": "fleet", "machine": 5, "start_s": 600.0, "status": "ok"})
    >>> seen = pd.DataFrame({"visit": [0, 0], "residence": [7, -1]})
    >>> where = pd.DataFrame({"residence": [7, 8], "machine": 5, "start_s": [0.0, 900.0], "end_s": [900.0, 1800.0]})
    >>> residents(visits, seen, where).holds
    True
    >>> made = residents(visits.assign(start_s=1200.0), seen, where)
    >>> made.left, made.right
    (0.0, 2.0)
    """
    answered = visits[visits["status"].astype(str) == "ok"].astype({"collection": str})
    found = processes.loc[processes["residence"] >= 0, _PAIR].drop_duplicates()
    stays = instances[["residence", "machine", "start_s", "end_s"]]
    at = answered[["visit", "collection", "machine", "start_s"]].rename(columns={"start_s": "at_s"})
    both = stays.merge(at, on="machine")
    there = both.loc[(both["start_s"] <= both["at_s"]) & (both["at_s"] < both["end_s"]), [*_PAIR, "collection"]]
    pairs = found.merge(there, on=_PAIR, how="outer", indicator="side")
    alike = int((pairs["side"] == "both").sum())
    missed = int(((pairs["side"] == "right_only") & (pairs["collection"] == "fleet")).sum())
    return Check("profile_residents", float(alike), float(alike + missed + (pairs["side"] == "left_only").sum()), 0.0)
