"""What a log and public scores of a benchmark say of machines: the posterior of departures from spec sheets."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.crossplatform import costs
from analysis.crossplatform.departures import COMMON, Departures, Parameters, Priors, model_of, posterior, prior
from analysis.crossplatform.evidence import Evidence
from analysis.crossplatform.measured import FULL, MeasuredService, exponent_prior, service_s
from analysis.crossplatform.service import sizes_bytes
from models.arrays import Floats
from models.errors import InputError
from models.platforms import Platform

OWN_LOG_SD = 0.01
"""Of a measured mean service time around the model's."""
PUBLISHED_LOG_SD, UNPUBLISHED_LOG_SD = 0.02, 3.0
"""Of a benchmark's instructions around those counted; when nobody counted them, its misses are taken to be the
service's."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Public scores of a benchmark, and what a request of it does on a platform where somebody counted."""

    platforms: tuple[Platform, ...]
    log_scores: Floats
    """(P,) of requests per second."""
    counted_on: Platform
    instructions: float
    misses: Floats
    """(L,) per instruction."""
    instructions_log_sd: float

    def rates_per_s(self, parameters: Parameters, exponent: tuple[float, float]) -> Floats:
        """Return the scores as modelled: (D, P) requests per second."""
        instructions = np.exp(parameters.benchmark_work()) * self.instructions
        source = parameters.machine(self.counted_on)
        work = costs.CountedWork(source, instructions, self.misses[:, None], self.misses, exponent)
        needs = [costs.saturated(work, parameters.benchmark(), parameters.machine(name)) for name in self.platforms]
        together = costs.Saturated(*(np.concatenate(columns, axis=1) for columns in zip(*needs, strict=True)))
        return costs.saturated_rate_per_s(together, parameters.memory())


def scores(evidence: Evidence, measured: MeasuredService) -> Scores | None:
    """Return the scores of platforms whose spec sheets are known; None if there are none.

    Parameters
    ----------
    evidence : with the table `benchmarks`, or None in its place
    measured : what a request is taken to do where nobody counted
    """
    table, sheets = evidence.benchmarks, evidence.scored or evidence.platforms
    if table is None:
        return None
    table = table[table["platform"].isin(list(sheets)) & table["score_per_s"].notna()]
    if table.empty:
        return None
    _check(table)
    platforms = tuple(sheets[name] for name in table["platform"])
    log_scores = np.log(table["score_per_s"].to_numpy(np.float64))
    # Counters of the calibration platform are preferred: what its caches really hold is then the same for both.
    counted = table.dropna(subset=["instructions", "l1_misses", "l2_misses"])
    counted = counted.sort_values("platform", key=lambda names: names != evidence.calibration, kind="stable")
    if counted.empty:
        mean = measured.per_request(measured.instructions, measured.mean_mix)[0]
        return Scores(platforms, log_scores, measured.platform, float(mean), measured.mean_misses, UNPUBLISHED_LOG_SD)
    instructions, *misses = counted[["instructions", "l1_misses", "l2_misses"]].to_numpy(np.float64)[0]
    source = sheets[counted["platform"].iloc[0]]
    return Scores(platforms, log_scores, source, float(instructions), np.array(misses) / instructions, PUBLISHED_LOG_SD)


def _check(table: pd.DataFrame) -> None:
    wrong = table[~(table["score_per_s"] > 0)]
    faults = [f"score_per_s of {row.platform} is {row.score_per_s:g}, must be above 0" for row in wrong.itertuples()]
    twice = sorted(set(table["platform"][table["platform"].duplicated()]))
    if faults or twice:
        raise InputError("benchmarks: " + "; ".join([*faults, *(f"{name} is scored twice" for name in twice)]))


@dataclass(frozen=True, slots=True, eq=False)
class ServedLog:
    """The mean service time of the service on a platform where it ran."""

    platform: Platform
    counts: Floats
    """(1, J) requests of the whole log."""
    rate_per_s: float
    service_time_s: float


def runs(evidence: Evidence, measured: MeasuredService) -> list[ServedLog]:
    """Return the mean service times of all logs with utilisation, that of the calibration platform first.

    There it is as at the mean rate, so that the posterior answers for what predictions start from.
    """
    here = measured.processor_s(measured.mean_mix)[0] / measured.platform.vcpus
    examples = [ServedLog(measured.platform, measured.mean_mix, measured.rate_per_s, float(here))]
    for name, log in evidence.logs.items():
        rows = log.taken((log.utilisation < FULL) & (log.requests > 0))
        if name != evidence.calibration and rows.requests.size:
            total = rows.requests.sum()
            mean_s = float(rows.utilisation.sum() * rows.interval_s / total)
            rate = float(rows.requests.mean() / rows.interval_s)
            examples.append(ServedLog(evidence.platforms[name], rows.counts.sum(axis=0)[None], rate, mean_s))
    return examples


def learn(evidence: Evidence, measured: MeasuredService, priors: Priors) -> Departures:
    """Return the posterior of departures, given the service's CPU time where it ran and the public scores."""
    public, own = scores(evidence, measured), runs(evidence, measured)
    platforms = [run.platform for run in own]
    if public is not None:
        platforms += [public.counted_on, *public.platforms]
    models = tuple(dict.fromkeys(model_of(platform) for platform in platforms))
    counted_sizes = sizes_bytes(measured.platform if public is None else public.counted_on)
    exponent, exponent_sd = exponent_prior(counted_sizes[: 2 if public is None else public.misses.size], priors)
    work_sd = PUBLISHED_LOG_SD if public is None else public.instructions_log_sd
    before = prior(models, priors, (measured.exponent_sd, exponent_sd), work_sd)

    def predicted(among: Floats) -> Floats:
        parameters = Parameters(models, among)
        times = [service_s(measured, parameters, run.platform, run.counts, run.rate_per_s) for run in own]
        if public is not None:
            times.append(public.rates_per_s(parameters, exponent))
        return np.log(np.concatenate(times, axis=1))

    observed, seen_sd = np.log([run.service_time_s for run in own]), np.full(len(own), OWN_LOG_SD)
    if public is not None:
        observed = np.append(observed, public.log_scores)
        seen_sd = np.append(seen_sd, np.full(public.log_scores.size, priors.score_log_sd))
    at, covariance, scale = posterior(predicted, (observed, seen_sd), before, COMMON)
    return Departures(models, at, covariance, scale * priors.of_hardware())
