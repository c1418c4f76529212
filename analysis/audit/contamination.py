"""Controls that have the feature, though no row says so."""

import numpy as np
from scipy.special import expit

from analysis.audit.case import COMPARED, PAST, STEADY, Case, unmet
from analysis.audit.findings import ALPHA, MATERIAL, Finding
from analysis.audit.recorded_feature import changes_of_machines
from models.arrays import Floats

_LEAST_MACHINES = 8
"""Machines of the smaller arm from which the shapes of their changes are compared."""
_DRAWS = 499
"""Random divisions of the machines; with the given one, the least chance that they can tell is `ALPHA`."""
_SHARES = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
"""Shares of the controls that might have the feature."""
_NAMED = 10
"""Machines that the text names, the likeliest ones."""
_STEPS = 12
"""Sizes of the jump that are tried, from half of the plain estimate to the same effect under the largest share."""


def contaminated_controls(case: Case) -> list[Finding] | str:
    """Find controls of which a part jumps, at the study's start, as machines with the feature do.

    Compared are the controls' changes from before to the study, as a mixture of two normal laws a jump apart and as one
    (likelihood ratio). How large the ratio becomes by chance is seen from random divisions of all machines, each arm's
    changes less their mean, so that no law need be known. It alarms at a chance of `ALPHA`, if the share times the jump
    is `MATERIAL` half-widths of the plain estimate. Where all controls have the feature nothing can be seen.
    """
    table, plain = case.table, case.plain
    needs = unmet((table.crossover, STEADY), (plain is None, COMPARED), (bool(table.study.all()), PAST))
    if needs or plain is None:
        return needs
    change, series = changes_of_machines(table, ~table.study, table.study)
    machines = [np.flatnonzero((series > 0) & arm) for arm in (table.ever, table.never & ~table.ever)]
    treated, controls = (change[arm] for arm in machines)
    if (fewest := min(len(treated), len(controls))) < _LEAST_MACHINES:
        return (
            f"{_LEAST_MACHINES} machines of each arm with rows before and in the study, where the smaller has {fewest}"
        )
    jumps = plain.change * np.geomspace(0.5, 1.0 / (1.0 - _SHARES[-1]), _STEPS)
    controls, treated = controls - controls.mean(), treated - treated.mean()
    ratio, share, jump = _mixture(controls, treated, jumps)
    if plain.half_widths(share * jump) < MATERIAL or not ratio > 0:
        return []
    exceeding, allowed, rng = 1, ALPHA * (_DRAWS + 1), np.random.default_rng(len(controls))
    for _ in range(_DRAWS):
        drawn = rng.permutation(np.concatenate([controls, treated]))
        exceeding += _mixture(drawn[: len(controls)], drawn[len(controls) :], jumps)[0] >= ratio
        if exceeding > allowed:
            return []
    evidence = {"share": share, "jump": jump, "machines": len(controls), "chance": exceeding / (_DRAWS + 1)}
    evidence["moved_in_half_widths"] = plain.half_widths(share * jump)
    odds = likely_changed(controls, treated, share, jump)
    likeliest = {
        str(table.machines[machines[1][place]]): float(odds[place]) for place in np.argsort(-odds, kind="stable")
    }
    likely = {name: chance for name, chance in likeliest.items() if chance > 0.5}
    evidence |= {f"machine {name}": chance for name, chance in likely.items()}
    named = ", ".join([*likely][:_NAMED]) + (f" and {len(likely) - _NAMED:,} others" if len(likely) > _NAMED else "")
    what = (
        f"of the machines without the feature some {share:.0%} change by {jump:+.1%} against the others when the study "
        "begins, as if they had it" + (f"; likeliest {named}" if likely else "")
    )
    remedy = "find out which machines really have the feature; correct treated, or leave them out"
    return [Finding("contaminated_controls", "error", what, evidence, remedy)]


def _mixture(controls: Floats, treated: Floats, jumps: Floats) -> tuple[float, float, float]:
    """Return the greatest log likelihood ratio of controls that are a mixture, to one normal law, its share and jump.

    All changes are less their arm's mean. The treated and both parts of the controls have one variance: that of all
    changes, less what the mixture adds. Only shares and jumps that leave a part of it are tried.
    """
    everything = np.concatenate([controls, treated])
    variance = float((everything**2).mean())
    if not variance > 0:
        return 0.0, 0.0, 0.0
    share, jump = (grid.ravel() for grid in np.meshgrid(_SHARES, jumps, indexing="ij"))
    left = variance - len(controls) / len(everything) * share * (1.0 - share) * jump**2
    usable = left > 0.02 * variance
    if not usable.any():
        return 0.0, 0.0, 0.0
    share, jump, sd = share[usable], jump[usable], np.sqrt(left[usable])
    apart, odds = jump / sd, share / (1.0 - share)
    below = (controls[:, None] + share * jump) / sd
    mixed = (np.logaddexp(0.0, np.log(odds) + apart * below - apart**2 / 2) - below**2 / 2).sum(axis=0)
    mixed += len(controls) * np.log1p(-share) - (treated**2).sum() / (2 * sd**2)
    ratios = mixed + len(everything) * (0.5 + np.log(variance**0.5 / sd))
    best = int(ratios.argmax())
    return float(ratios[best]), float(share[best]), float(jump[best])


def likely_changed(controls: Floats, treated: Floats, share: float, jump: float) -> Floats:
    """Return (C,) the chance of each control to be of the part that jumps, by the odds of the mixture.

    Parameters
    ----------
    controls, treated : (C,), (T,) changes less their arm's mean
    share, jump : of the mixture

    Examples
    --------
    >>> changes = np.array([-0.5, -0.5, 0.5, 0.5])
    >>> likely_changed(changes, np.array([-0.1, 0.1]), 0.5, 0.9).round(3).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    everything = np.concatenate([controls, treated])
    variance = float((everything**2).mean()) - len(controls) / len(everything) * share * (1.0 - share) * jump**2
    logit = np.log(share / (1.0 - share)) + jump * (controls + share * jump - jump / 2) / variance
    return np.asarray(expit(logit), dtype=np.float64)
