"""`world/calibration`: what a fleet's tables say of its population, machines and days, beside what fleets publish.

Every function of facts returns measured rows (series, x, value), one single number a fact.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import number, numbers
from analysis.figures.wsmeter.changes import machine_cv
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.summaries import job_statistics
from models.arrays import DAY_S

TOP_SHARES = {"1": 0.01, "5": 0.05, "10": 0.1, "20": 0.2}
TOP_JOBS = 200
"""Jobs whose quota WSMeter adds up (Lee et al. 2018, section 6.3)."""


WIDEST_RATIO = 2.2
"""Ratio of measured to published at which the drawing is cut."""


def quota_facts(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return how much of the CPU quota the largest jobs hold, and quantiles of instances per job.

    Parameters
    ----------
    jobs : columns quota, instances; every job of the fleet once
    """
    cumulated = np.cumsum(np.sort(jobs["quota"].to_numpy(dtype=np.float64))[::-1])
    tops = {f"{name}pct": max(1, round(share * len(jobs))) for name, share in TOP_SHARES.items()}
    tops[str(TOP_JOBS)] = min(TOP_JOBS, len(jobs))
    sizes = quantiles("instances_of_job", jobs["instances"], (50, 75, 90, 95, 99))
    return numbers(**{f"quota_of_top_{name}": cumulated[n - 1] / cumulated[-1] for name, n in tops.items()}, **sizes)


def placement_facts(instances: pd.DataFrame, at_s: float) -> pd.DataFrame:
    """Return how many instances a machine holds at one moment, and how often a job has just one there.

    Machines without any instance are not counted.

    Parameters
    ----------
    instances : columns job, machine, start_s, end_s; one row per stay
    at_s : the moment, seconds

    Raises
    ------
    NotEnoughDataError
        If nothing runs then.
    """
    present = instances[(instances["start_s"] <= at_s) & (instances["end_s"] > at_s)]
    if present.empty:
        raise NotEnoughDataError(1, 0, f"instances at {at_s:g} s")
    on_machine = present.groupby("machine").size().to_numpy()
    pairs = present.groupby(["job", "machine"]).size().to_numpy()
    low, middle, high = np.quantile(on_machine, (0.05, 0.5, 0.95))
    return numbers(
        instances_on_machine_mean=on_machine.mean(),
        instances_on_machine_p5=low,
        instances_on_machine_p50=middle,
        instances_on_machine_p95=high,
        instances_on_machine_p5_over_p50=low / middle,
        instances_on_machine_p95_over_p50=high / middle,
        single_pairs=(pairs == 1).mean(),
    )


def service_facts(measurements: pd.DataFrame, names: pd.DataFrame) -> pd.DataFrame:
    """Return the spread of performance between the instances of named services, over their mean.

    Parameters
    ----------
    measurements : columns job, weight, value
    names : columns job, name; the services asked about
    """
    jobs = job_statistics(measurements).merge(names[["job", "name"]], on="job")
    return numbers(**{f"job_cv_{name}": cv for name, cv in zip(jobs["name"], jobs["std"] / jobs["mean"], strict=True)})


def machine_facts(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the spread of performance between machines, over their mean.

    Parameters
    ----------
    measurements : columns machine, weight, value and perhaps exposure
    """
    return numbers(machine_cv=machine_cv(measurements).value)


def diurnal_facts(epochs: pd.DataFrame) -> pd.DataFrame:
    """Return the half-amplitude of the fleet's daily load swing over its mean: least squares of one harmonic.

    Parameters
    ----------
    epochs : columns start_s, cpu_s; whole days

    Raises
    ------
    NotEnoughDataError
        If the epochs span less than a day.
    """
    start_s, load = epochs["start_s"].to_numpy(dtype=np.float64), epochs["cpu_s"].to_numpy(dtype=np.float64)
    needed = round(DAY_S / (start_s[1] - start_s[0])) if len(start_s) > 1 else 2
    if len(start_s) < needed:
        raise NotEnoughDataError(needed, len(start_s), "epochs")
    angle = 2 * np.pi * start_s / DAY_S
    (mean, *wave), *_ = np.linalg.lstsq(np.column_stack([np.ones_like(angle), np.cos(angle), np.sin(angle)]), load)
    return numbers(diurnal_half_amplitude=float(np.hypot(*wave)) / mean)


def load_facts(minutes: pd.DataFrame) -> pd.DataFrame:
    """Return how much an instance's load varies within five minutes: the median ratio of its 90th to 10th percentile.

    A minute is a fifth of the time, so these percentiles are the highest and the lowest of five.

    Parameters
    ----------
    minutes : columns residence, epoch (of a minute each, from 0), cpu_s

    Raises
    ------
    NotEnoughDataError
        If no instance is there for five minutes.
    """
    spans = minutes.assign(span=minutes["epoch"] // 5).groupby(["residence", "span"])["cpu_s"]
    whole = spans.agg(["size", "min", "max"]).query("size == 5 and min > 0")
    if whole.empty:
        raise NotEnoughDataError(5, int(spans.size().max()) if len(minutes) else 0, "minutes of one instance")
    return numbers(load_p90_over_p10_5min=float((whole["max"] / whole["min"]).median()))


def latency_facts(latency: pd.Series) -> pd.DataFrame:
    """Return how the idle memory latency of identical machines is distributed: CV, skewness and excess kurtosis.

    Parameters
    ----------
    latency : one a machine
    """
    from scipy.stats import kurtosis, skew

    return numbers(
        idle_latency_cv=float(latency.std() / latency.mean()),
        idle_latency_skew=float(skew(latency)),
        idle_latency_kurtosis=float(kurtosis(latency)),
    )


def quantiles(name: str, values: pd.Series, percents: tuple[int, ...]) -> dict[str, float]:
    """Return quantiles by name, such as ``cpi_p50``."""
    ends = np.quantile(values.to_numpy(dtype=np.float64), [percent / 100 for percent in percents])
    return {f"{name}_p{percent}": float(value) for percent, value in zip(percents, ends, strict=True)}


def calibration(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw every measured fact over its published value, with the tolerance as a bar; arrows lie outside."""
    facts = published.reset_index(drop=True)
    value = facts["value"].to_numpy(dtype=np.float64)
    ratio = np.array([number(measured, name) for name in facts["series"]]) / value
    half = (facts["tolerance"].astype(float) / facts["value"].abs()).to_numpy()
    low, high = 1 - np.where(np.isnan(half), 1, half), 1 + np.nan_to_num(half)
    place = np.arange(len(facts), dtype=float)[::-1]
    figure, (axes,) = style.panels(columns=1, height_inches=0.8 + _FACT_INCHES * len(facts))
    shown = np.clip(low, 0, WIDEST_RATIO), np.clip(high, 0, WIDEST_RATIO)
    axes.barh(place, shown[1] - shown[0], 0.7, shown[0], color="#dcdcdc", label="tolerance")
    style.published_line(axes, 1.0, "x")
    inside = (ratio >= low - 1e-12) & (ratio <= high + 1e-12)
    looks = ((inside, style.BLUE, "o", "within"), (~inside, style.RED, "s", "outside"))
    for chosen, colour, form, text in looks:
        axes.plot(np.clip(ratio[chosen], 0, WIDEST_RATIO), place[chosen], form, color=colour, markersize=3, label=text)
    for cut, form in ((ratio > WIDEST_RATIO, ">"), (ratio < 0, "<")):
        axes.plot(np.clip(ratio[cut], 0, WIDEST_RATIO), place[cut], form, color=style.RED, markersize=6)
    axes.set_yticks(place, [_words(name) for name in facts["series"]], fontsize=style.LEAST_POINTS)
    axes.set_xlim(-0.05, WIDEST_RATIO + 0.05)
    axes.set_ylim(-0.7, len(facts) - 0.3)
    style.label(axes, "measured / published", "")
    style.shared_legend(figure, columns=4)
    return figure


def _words(name: str) -> str:
    """Return the name of a fact in words that fit beside a panel.

    Examples
    --------
    >>> _words("cpi_over_mai_slope"), _words("platform_ratio_log_sd_naples_rome")
    ('CPI over MAI slope', 'ratio log SD Naples Rome')
    """
    shorter = name.removeprefix("platform_").replace("instances_on_machine", "instances/machine")
    shorter = shorter.replace("job_series_autocorrelation", "job series autocorr.")
    return " ".join(_KNOWN.get(word, word) for word in shorter.split("_"))


_KNOWN = {
    **{word: word.upper() for word in ("cpi", "mai", "cv", "sd", "cpu")},
    **{word: word.title() for word in ("haswell", "broadwell", "skylake", "naples", "rome")},
    "icelake": "Ice Lake",
    "r2": "R²",
    "pct": "%",
}
_FACT_INCHES = 0.145
"""Height of the line of a fact."""
