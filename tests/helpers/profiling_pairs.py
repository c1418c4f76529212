"""Pairs of profiles of a made-up fleet, healthy or with one function more expensive where one tag matches."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

PLATFORMS, PLACES = ("ice", "milan", "rome"), ("east", "west")
JOBS, SHARED, OWN = 10, 10, 8
SAMPLES = 1200
"""Mean samples of a machine in a period."""
DIMENSIONS = ("revision", "compiler", "platform", "datacentre")


@dataclass(frozen=True)
class Planted:
    """What was planted: a function's factor where the tag matches; a revision belongs to its job."""

    dimension: str
    value: str
    application: str
    function: str
    factor: float


def pair(rng: np.random.Generator, planted: str | None, machines: int = 150):
    """Return the profile before, the one after, and what was planted (None: nothing).

    Each machine runs three jobs. Weights of functions differ between jobs, platforms, machines (persistent), periods
    of a job and visits. Half of the jobs get a new revision on a part of their machines in the later period, some of it
    by the new compiler; a few have it already; loads of jobs change. New builds change costs a little in good health: a
    revision those of 15% of its functions by 10%, the compiler all by 5% (standard deviations).
    """
    weights = base_weights(rng)
    machine = machine_table(rng, machines)
    builds = {job: build(rng) for job in range(JOBS)}
    cause = choose(rng, planted, builds) if planted else None
    load = rng.dirichlet(np.full(JOBS, 3.0), size=2)
    platform_effect = rng.normal(0, 0.3, (len(PLATFORMS), JOBS, SHARED + OWN))
    persistent = rng.normal(0, 0.25, (machines, JOBS, SHARED + OWN))
    released = rng.normal(0, 0.1, (JOBS, SHARED + OWN)) * (rng.random((JOBS, SHARED + OWN)) < 0.15)
    compiled = np.log(0.97) + rng.normal(0, 0.05, (JOBS, SHARED + OWN))
    functions = [names(job) for job in range(JOBS)]
    sides = []
    for later in (0, 1):
        drift = rng.normal(0, 0.03, (JOBS, SHARED + OWN))
        rows = []
        for m in range(machines):
            for job in machine["jobs"][m]:
                new = machine["turn"][m, job] < builds[job]["new_share"][later]
                tags = tags_of(job, builds[job], bool(new), machine, m)
                log = (
                    np.log(weights[job])
                    + platform_effect[machine["platform"][m], job]
                    + persistent[m, job]
                    + drift[job]
                    + released[job] * new
                    + compiled[job] * (tags["compiler"] == "clang-18")
                    + rng.normal(0, 0.1, SHARED + OWN)
                )
                weight = np.exp(log)
                if acts(cause, tags, bool(later)):
                    weight[functions[job].index(cause.function)] *= cause.factor
                count = rng.poisson(SAMPLES * load[later, job] * JOBS / 3 * rng.gamma(4, 0.25))
                seen = rng.multinomial(count, weight / weight.sum()).tolist()
                own = tuple(tags.values())
                rows += [(name, *own, m, k, k * 1000) for name, k in zip(functions[job], seen, strict=True) if k]
        columns = ["function", "application", "revision", "compiler", "platform", "datacentre", "machine"]
        sides.append(pd.DataFrame(rows, columns=[*columns, "samples", "value"]))
    return sides[0], sides[1], cause


def base_weights(rng):
    shared = rng.dirichlet(np.full(SHARED, 5.0)) * 0.4
    made = []
    for _ in range(JOBS):
        own = np.arange(1, OWN + 1) ** -1.0
        made.append(np.concatenate([shared * rng.lognormal(0, 0.4, SHARED), 0.6 * own / own.sum()]))
    return np.array(made)


def machine_table(rng, machines):
    return {
        "platform": rng.integers(0, len(PLATFORMS), machines),
        "place": rng.integers(0, len(PLACES), machines),
        "jobs": [rng.choice(JOBS, 3, replace=False) for _ in range(machines)],
        "turn": rng.random((machines, JOBS)),
    }


def build(rng):
    kind = rng.choice(4, p=[0.4, 0.2, 0.25, 0.15])
    shares = [(0.0, 0.0), (0.0, 1.0), (0.0, 0.5), (0.3, 0.8)][kind]
    return {"new_share": shares, "compiler": "clang-18" if rng.random() < 0.6 else "clang-17"}


def tags_of(job, built, new, machine, m):
    return {
        "application": f"job{job}",
        "revision": "r2" if new else "r1",
        "compiler": built["compiler"] if new else "clang-17",
        "platform": PLATFORMS[machine["platform"][m]],
        "datacentre": PLACES[machine["place"][m]],
    }


def names(job):
    return [f"lib::f{i}" for i in range(SHARED)] + [f"job{job}::f{i}" for i in range(OWN)]


def choose(rng, dimension, builds):
    factor = float(rng.uniform(1.6, 2.5))
    shared = f"lib::f{rng.integers(SHARED)}"
    released = [job for job, built in builds.items() if built["new_share"][1] > 0]
    if not released:
        builds[0].update(new_share=(0.0, 0.5))
        released = [0]
    if dimension == "revision":
        job = int(rng.choice(released))
        function = shared if rng.random() < 0.5 else f"job{job}::f{rng.integers(3)}"
        return Planted("revision", "r2", f"job{job}", function, factor)
    if dimension == "compiler":
        for job in (released * 2)[:2] if len(released) > 1 else [0, 1]:
            built = builds[job]
            built.update(compiler="clang-18", new_share=built["new_share"] if built["new_share"][1] else (0.0, 0.5))
        return Planted("compiler", "clang-18", "", shared, factor)
    value = str(rng.choice(PLATFORMS if dimension == "platform" else PLACES))
    return Planted(dimension, value, "", shared, factor)


def acts(cause, tags, later):
    if cause is None:
        return False
    if cause.application and tags["application"] != cause.application:
        return False
    when = later or cause.dimension in ("revision", "compiler")
    return when and tags[cause.dimension] == cause.value
