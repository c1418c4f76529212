"""The law beside the kernel's own accounting: utilisation and queueing of every interval, and how far they differ."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.law import law
from models.errors import InputError
from scenarios.live.run import Observed

LEAST_UTILISATION = 0.01
"""Intervals with less, by the kernel, have no normalised error: the server's own bookkeeping is then what is left."""
_DIGITS = 6
"""Decimals of seconds in the tables: microseconds."""


def tables(seen: Observed, servers: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the requests' log and the table of the kernel's accounts per interval, as they are written.

    Parameters
    ----------
    seen : what was recorded
    servers : CPUs of the server

    Returns
    -------
    (DataFrame, DataFrame)
        session, arrival_s, departure_s, demand_s; and start_s, end_s, utilisation (0..1), cpu_s, run_queue_wait_s,
        others_s, stolen_s of the intervals, in seconds to six decimals.

    Examples
    --------
    >>> requests = pd.DataFrame({"session": [0], "demand_s": [1.0], "arrival_s": [0.5], "departure_s": [1.5]})
    >>> samples = {"time_s": [0.0, 2.0], "run_s": [3.0, 4.0], "wait_s": [0.0, 0.0], "busy_s": [7.0, 8.5]}
    >>> seen = Observed(requests, pd.DataFrame(samples).assign(stolen_s=0.0), pd.DataFrame(), 1.0)
    >>> tables(seen, servers=1)[1]
       start_s  end_s  utilisation  cpu_s  run_queue_wait_s  others_s  stolen_s
    0      0.0    2.0          0.5    1.0               0.0       0.5       0.0
    """
    requests = seen.requests[["session", "arrival_s", "departure_s", "demand_s"]].round(_DIGITS)
    time_s = seen.samples["time_s"].to_numpy()
    steps = {name: np.diff(seen.samples[name]) for name in ("run_s", "wait_s", "busy_s", "stolen_s")}
    cpu = pd.DataFrame(
        {
            "start_s": time_s[:-1],
            "end_s": time_s[1:],
            "utilisation": steps["run_s"] / (servers * np.diff(time_s)),
            "cpu_s": steps["run_s"],
            "run_queue_wait_s": steps["wait_s"],
            "others_s": np.maximum(0.0, steps["busy_s"] - steps["run_s"]),
            "stolen_s": steps["stolen_s"],
        }
    )
    return requests, cpu.round(_DIGITS)


def summary(requests: pd.DataFrame, cpu: pd.DataFrame, servers: int) -> dict[str, Any]:
    """Return what the law says of a log beside what the kernel says, per interval and over all.

    Parameters
    ----------
    requests, cpu : as `tables` returns them
    servers : CPUs of the server

    Returns
    -------
    dict
        Counts, the law's totals, the kernel's, the intervals and the errors. Errors are shares: of utilisation, the
        difference (`raw`) and the difference over the kernel's (`normalised`), as median, 97th percentile and
        greatest over the intervals; of queueing, over all. A last interval of less than half the length counts in the
        totals only.

    Raises
    ------
    ValueError
        If no request was answered or there is no interval.

    Examples
    --------
    >>> requests = pd.DataFrame({"session": [0], "arrival_s": [0.5], "departure_s": [1.5], "demand_s": [1.0]})
    >>> cpu = pd.DataFrame({"start_s": [0.0], "end_s": [2.0], "utilisation": [0.4]})
    >>> cpu = cpu.assign(cpu_s=0.8, run_queue_wait_s=0.0)
    >>> said = summary(requests, cpu, servers=1)
    >>> said["utilisation"], round(said["errors"]["raw"]["median"], 3), round(said["errors"]["normalised"]["max"], 3)
    (0.5, 0.1, 0.25)
    """
    answered = requests[requests["departure_s"].notna()]
    if answered.empty or cpu.empty:
        raise InputError(
            f"of {len(requests)} requests {len(answered)} were answered in {len(cpu)} intervals; none will do"
        )
    start_s, end_s = float(cpu["start_s"].iloc[0]), float(cpu["end_s"].iloc[-1])
    ends_s = max(end_s, float(answered["departure_s"].max()))
    seen = curve(answered["arrival_s"], answered["departure_s"], start_s, ends_s)
    whole = law(seen, servers)
    rows = intervals(seen, cpu, servers)
    waited_s = float(cpu["run_queue_wait_s"].sum())
    return {
        "requests": len(requests),
        "failed": len(requests) - len(answered),
        "sessions": int(requests["session"].nunique()),
        "servers": servers,
        "length_s": end_s - start_s,
        "service_time_s": whole.service_time_s,
        "queueing_time_s": whole.queueing_time_s,
        "response_time_s": whole.response_time_s,
        "utilisation": whole.utilisation,
        "peak": whole.peak,
        "kernel": {
            "cpu_s": float(cpu["cpu_s"].sum()),
            "run_queue_wait_s": waited_s,
            "utilisation": float(cpu["cpu_s"].sum()) / (servers * (end_s - start_s)),
        },
        "errors": errors(rows) | {"queueing": _share(whole.queueing_time_s - waited_s, waited_s)},
        "intervals": rows.to_dict("records"),
    }


def intervals(seen: Curve, cpu: pd.DataFrame, servers: int) -> pd.DataFrame:
    """Return the law beside the kernel for each interval of the kernel's table.

    Parameters
    ----------
    seen : occupancy that covers the intervals
    cpu : start_s, end_s, utilisation, run_queue_wait_s
    servers : k >= 1

    Returns
    -------
    DataFrame
        start_s, end_s, utilisation (law, 0..1), kernel_utilisation, error (their difference), queueing_time_s (law),
        run_queue_wait_s, peak.

    Examples
    --------
    >>> cpu = pd.DataFrame({"start_s": [0.0], "end_s": [2.0], "utilisation": [0.9], "run_queue_wait_s": [0.5]})
    >>> intervals(curve([0.0, 1.0], [2.0, 2.0]), cpu, servers=1)[["utilisation", "queueing_time_s"]]
       utilisation  queueing_time_s
    0          1.0              1.0
    """
    said = [law(seen, servers, start, end) for start, end in zip(cpu["start_s"], cpu["end_s"], strict=True)]
    rows = cpu[["start_s", "end_s"]].assign(
        utilisation=[each.utilisation for each in said],
        kernel_utilisation=cpu["utilisation"],
        queueing_time_s=[each.queueing_time_s for each in said],
        run_queue_wait_s=cpu["run_queue_wait_s"],
        peak=[each.peak for each in said],
    )
    rows.insert(4, "error", rows["utilisation"] - rows["kernel_utilisation"])
    return rows


def errors(rows: pd.DataFrame) -> dict[str, Mapping[str, float]]:
    """Return the median, the 97th percentile and the greatest of both errors of utilisation (Kelly et al. 2008, 5.1).

    Parameters
    ----------
    rows : start_s, end_s, error, kernel_utilisation; intervals shorter than half the longest are left out, and
        those below `LEAST_UTILISATION` from the normalised error

    Examples
    --------
    >>> rows = pd.DataFrame({"start_s": [0.0, 1.0], "end_s": [1.0, 2.0], "error": [0.01, -0.03]})
    >>> errors(rows.assign(kernel_utilisation=[0.5, 0.6]))["raw"]["median"]
    0.02
    """
    length_s = rows["end_s"] - rows["start_s"]
    whole = rows[length_s >= length_s.max() / 2]
    raw = whole["error"].abs()
    used = whole["kernel_utilisation"] >= LEAST_UTILISATION
    return {"raw": _spread(raw), "normalised": _spread(raw[used] / whole["kernel_utilisation"][used])}


def _spread(values: pd.Series) -> dict[str, float]:
    names = {"median": 0.5, "p97": 0.97, "max": 1.0}
    return {name: float(values.quantile(share)) for name, share in names.items()}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
