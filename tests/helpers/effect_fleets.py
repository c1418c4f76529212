"""Small fleets with a known effect for the scorecard's tests, made in no time; workers find them by their module."""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.effects.study import potential
from models.randomness import stream
from scenarios.effects.scorecard.pieces import ScorecardDesign

JOBS, EFFECT = 5, 0.02


def fleet(corner, seed, machines):
    """A design of three days: the value is the job's, the machine's and noise's; `wide` has ten times the noise."""
    rng = stream(seed, f"fleet of {corner}")
    machine, job = np.divmod(np.arange(machines * JOBS), JOBS)
    noise = 0.03 if corner == "wide" else 0.003
    own = (1.0 + job) * (1.0 + 0.02 * rng.standard_normal(machines))[machine]
    days = [own * (1.0 + noise * rng.standard_normal(len(own))) for _ in range(2)]
    row = {"job": job, "machine": machine, "weight": 1.0 + job, "treated": 0}
    past, off = (pd.DataFrame({"period": day, "value": value, **row}) for day, value in enumerate(days))
    on = off.assign(value=off["value"] * (1.0 + EFFECT), treated=1)
    return [ScorecardDesign("day", (potential(past, off, on),), EFFECT)]


def slow_fleet(corner, seed, machines):
    """The same, and a file with the process that makes it; but for the first seed it takes a minute."""
    (Path(os.environ["EFFECT_FLEETS_BEGUN"]) / f"{corner}-{seed}").write_text(str(os.getpid()))
    if seed > 1:
        time.sleep(60.0)
    return fleet(corner, seed, machines)
