"""Requests that lost their departure: which they are, and when they left."""

import numpy as np

from models.arrays import Bools, Floats

_ABSURD = 3.0
"""A request open for so many times the longest response time has lost its departure."""


def overdue(arrival_s: Floats, departure_s: Floats) -> Bools:
    """Return which requests without a departure must have lost it, rather than be unfinished.

    One that has been open for three times the longest response time has. The share of such requests tells how many
    departures get lost; younger requests count as lost where fewer than this share of all responses take as long.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays of pairs, seconds; NaN: not seen

    Examples
    --------
    >>> overdue(np.array([0.0, 1.0, 2.0, 9.0]), np.array([1.0, np.nan, 3.0, np.nan]))
    array([False,  True, False, False])
    """
    is_open: Bools = np.isnan(departure_s) & ~np.isnan(arrival_s)
    if not is_open.any() or np.isnan(departure_s - arrival_s).all():
        return np.zeros(len(arrival_s), dtype=np.bool_)
    took = np.sort((departure_s - arrival_s)[~np.isnan(departure_s - arrival_s)])
    age = np.fmax(np.nanmax(arrival_s), np.nanmax(departure_s)) - arrival_s
    old = age > _ABSURD * took[-1]
    surely: Bools = is_open & old
    if not surely.any():
        return surely
    as_long = 1.0 - np.searchsorted(took, age[is_open]) / len(took)
    lost = surely.copy()
    lost[is_open] |= as_long < np.count_nonzero(surely) / np.count_nonzero(old)
    return lost


def imputed(arrival_s: Floats, departure_s: Floats, lost: Bools) -> Floats:
    """Return departures in which each lost one comes as long after its arrival as that of the last request before it.

    Requests that arrive one after the other meet the same load, so this keeps the aggregate response time on average
    if departures get lost by chance; leaving the requests out would lower it.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays of pairs, seconds
    lost : (n,) those to be replaced; at least one other is a whole pair

    Examples
    --------
    >>> imputed(np.array([0.0, 5.0, 9.0]), np.array([2.0, np.nan, np.nan]), np.array([False, True, False]))
    array([ 2.,  7., nan])
    """
    order = np.argsort(arrival_s, kind="stable")
    took = (departure_s - arrival_s)[order]
    whole = np.flatnonzero(~np.isnan(took))
    donor = np.maximum(np.searchsorted(whole, np.arange(len(took)), side="right") - 1, 0)
    made = np.empty_like(took)
    made[order] = took[whole[donor]]
    return np.where(lost, arrival_s + made, departure_s)
