"""What Apache Otava finds in the series of the watch: change points by e-divisive means and Student's t.

    python benchmarks/watch.py draw TUNING --worlds 25
    python benchmarks/watch.py draw HELD_OUT --worlds 100 --first 3000000
    python benchmarks/otava.py TUNING HELD_OUT [--environment DIR]

Otava (Fleming et al. 2023, DOI 10.1145/3578244.3583719; before: Hunter) gets an environment of its own, since its
requirements are not this project's: DIR if it is there, else a new one that is removed. Its series are each function's
share of all samples: by hour; by hour over the mean of the same hour of all days; by 24 hours, the last of which ends
the data. Every setting of a grid is tried on the worlds of TUNING: windows of 50 (its default) and 100 points, p-values
from 0.001 (its default) down, least magnitudes from 0 (its default) up. Its defaults on each series, the setting that
names most regressions there without a false alarm in any world, and the one whose regressions named exceed worlds with
a false alarm by most, are judged on HELD_OUT by the scorer of `watch.py`. A rise is growth, unless a fall follows
within a day, which makes it a transient; a fall is an improvement. Otava names no causes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.watch import Alarm, files_of, scored, truth_of
from models.arrays import Floats
from tests.helpers.watched_fleets import HOURS, Planted

VERSION = "0.8.0"
INPUTS = ("by hour", "by hour of the day", "by 24 hours")
WINDOWS = (50, 100)
P_VALUES = (1e-3, 1e-4, 1e-6, 1e-9)
MAGNITUDES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
_CHILD = """
import copy, json, sys
from otava.analysis import merge, split
series, windows, settings = json.load(open(sys.argv[1]))
found = []
for values in series:
    weak = {(window, p): split(values, window, first_pass) for window, p, first_pass in windows}
    answers = []
    for window, p, magnitude in settings:
        points = merge(copy.deepcopy(weak[window, p]), values, p, magnitude)
        answers.append([[int(point.index), float(point.stats.forward_rel_change())] for point in points])
    found.append(answers)
json.dump(found, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """A series and Otava's own settings."""

    series: str
    window: int = 50
    p_value: float = 1e-3
    magnitude: float = 0.0

    def __str__(self) -> str:
        """Return them in words."""
        return f"{self.series}, window {self.window}, p {self.p_value:g}, magnitude {self.magnitude:g}"


DEFAULTS = tuple(Setting(series) for series in INPUTS)
GRID = tuple(Setting(*values) for values in product(INPUTS, WINDOWS, P_VALUES, MAGNITUDES))


def shares(counts: Floats, series: str) -> tuple[Floats, list[int]]:
    """Return (functions, points) values, and the bin at which each point begins.

    Parameters
    ----------
    counts : (functions + 1, T), the last is everything else
    series : one of `INPUTS`
    """
    bins = counts.shape[1]
    if series == "by 24 hours":
        first = bins % HOURS
        days = counts[:, first:].reshape(len(counts), -1, HOURS).sum(axis=2)
        return days[:-1] / days.sum(axis=0), list(range(first, bins, HOURS))
    share = counts[:-1] / np.maximum(counts.sum(axis=0), 1.0)
    if series == "by hour of the day":
        for hour in range(HOURS):
            share[:, hour::HOURS] /= np.maximum(share[:, hour::HOURS].mean(axis=1, keepdims=True), 1e-300)
    return share, list(range(bins))


def alarms_of(world: int, function: int, points: Sequence[tuple[int, float]], begins: Sequence[int]) -> list[Alarm]:
    """Return what change points say."""
    alarms = []
    for at, (index, change) in enumerate(points):
        start = begins[index]
        after = points[at + 1] if at + 1 < len(points) else None
        before = points[at - 1] if at else None
        if change > 0:
            short = after is not None and after[1] < 0 and begins[after[0]] - start <= HOURS
            alarms.append(Alarm(world, function, "transient" if short else "growth", start))
        elif before is None or before[1] < 0 or start - begins[before[0]] > HOURS:
            alarms.append(Alarm(world, function, "improvement", start))
    return alarms


def found(python: Path, folder: Path, settings: Sequence[Setting]) -> Iterator[tuple[Setting, list[Alarm]]]:
    """Yield what Otava finds in the series of a folder, setting by setting."""
    worlds = [(world, counts.sum(axis=1)) for world, _, counts in files_of(folder)]
    for series in dict.fromkeys(setting.series for setting in settings):
        own = [setting for setting in settings if setting.series == series]
        alarms: list[list[Alarm]] = [[] for _ in own]
        for world, counts in worlds:
            values, begins = shares(counts, series)
            for function, answers in enumerate(_answers(python, values, own)):
                for at, points in enumerate(answers):
                    alarms[at] += alarms_of(world, function, points, begins)
        yield from zip(own, alarms, strict=True)


def _answers(python: Path, values: Floats, settings: Sequence[Setting]) -> list[list[list[tuple[int, float]]]]:
    """Return indices and relative changes of change points, by function and setting."""
    # Otava's first pass is at ten times the p-value.
    windows = sorted({(own.window, own.p_value, 10.0 * own.p_value) for own in settings})
    wanted = [(own.window, own.p_value, own.magnitude) for own in settings]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([values.tolist(), windows, wanted], file)
        file.flush()
        command = [str(python), "-c", _CHILD, file.name]
        answers = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [[[(at, change) for at, change in points] for points in own] for own in json.loads(answers)]


def judged(truth: Sequence[Planted], alarms: Sequence[Alarm]) -> dict[str, float]:
    """Return shares of worlds: regressions and others named, and worlds with a false alarm."""
    table = scored(truth, alarms)
    own = {one.world: {one.function, one.partner} for one in truth}
    false = {
        alarm.world
        for alarm in alarms
        if alarm.kind in {"growth", "improvement"} and alarm.function not in own[alarm.world]
    }
    rates = {str(what): float(row["named"] / row["worlds"]) for what, row in table.iterrows()}
    return {**rates, "worlds with a false alarm": len(false) / len(truth)}


def chosen(rates: dict[Setting, dict[str, float]]) -> list[Setting]:
    """Return the defaults, the best without a false alarm, and the best by what is right less what is false."""
    false = "worlds with a false alarm"
    none = [own for own in rates if not rates[own][false]]
    silent = [max(none, key=lambda own: rates[own]["regression"])] if none else []
    best = max(rates, key=lambda own: rates[own]["regression"] - rates[own][false])
    return list(dict.fromkeys([*DEFAULTS, *silent, best]))


def environment(folder: Path) -> Path:
    """Return the Python of an environment that has Otava; it is made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", f"apache-otava=={VERSION}"], check=True)
    return python


def main(arguments: Sequence[str] | None = None) -> None:
    """Tune on one folder, judge on the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tuning", type=Path)
    parser.add_argument("held_out", type=Path)
    parser.add_argument("--environment", type=Path, help="where Otava is, or is to be; none: a temporary one")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        python = environment(asked.environment or Path(scratch) / "otava")
        truth = truth_of(asked.tuning)
        rates = {setting: judged(truth, alarms) for setting, alarms in found(python, asked.tuning, GRID)}
        settings = chosen(rates)
        print(f"{len(GRID)} settings on {len(truth)} worlds:")
        print(pd.DataFrame({str(own): rates[own] for own in settings}).T.round(3).to_string())
        truth = truth_of(asked.held_out)
        answers = {own: judged(truth, alarms) for own, alarms in found(python, asked.held_out, settings)}
        print(f"\nthe same on {len(truth)} held-out worlds:")
        print(pd.DataFrame({str(own): answers[own] for own in settings}).T.round(3).to_string())


if __name__ == "__main__":
    main()
