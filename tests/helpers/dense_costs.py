"""What `wsc profile regress` compares, in dense tables: every row beside every function, and covariances written out.

The twin of `analysis.profiling.regressions.cells` and `causes`, which hold only what was sampled and a few functions at
a time. Formulas are those of their docstrings, one after the other.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

TAGS = ("revision", "compiler", "kernel", "platform", "datacentre")
MIN_SAMPLES, PRIOR = 20, 10.0


@dataclass
class DenseCells:
    """One application's rows: a machine in a cell, by block (platform and data centre), machine and cell."""

    application: str
    functions: list
    rows: pd.DataFrame
    """later, the tags, machine, cell, block, unit and count of each row."""
    samples: np.ndarray
    expected: np.ndarray
    between: np.ndarray
    usual: float
    common: float
    """What of the variance machines have in common, weighted, and all of it."""
    whole: float
    lasting: np.ndarray = None
    passing: np.ndarray = None

    def covariance(self, f, drift):
        """The covariance of the strays of function f."""
        e, unit, later = self.expected[:, f], self.rows["unit"].to_numpy(), self.rows["later"].to_numpy()
        alone = np.diag(1.0 / (self.rows["count"].to_numpy() * e * (1.0 - e)) + self.passing[f])
        return alone + self.lasting[f] * (unit[:, None] == unit) + drift * (later[:, None] == later)

    def metric(self, f, drift):
        """Its inverse, the levels of blocks projected out."""
        inverse, block = np.linalg.inv(self.covariance(f, drift)), self.rows["block"].to_numpy()
        levels = (block[:, None] == np.unique(block)).astype(float)
        return inverse - inverse @ levels @ np.linalg.inv(levels.T @ inverse @ levels) @ levels.T @ inverse

    def stray(self, f):
        """How far the log odds of function f are from what is expected, to first order."""
        e = self.expected[:, f]
        return (self.samples[:, f] / self.rows["count"].to_numpy() - e) / (e * (1.0 - e))


def dense_cells(table):
    """Return the dense tables of every application that was seen in both periods; columns as of `cells`."""
    made = [one for name, rows in table.groupby("application") if (one := _dense(name, rows)) is not None]
    share = min(max(sum(one.common for one in made) / sum(one.whole for one in made), 0.0), 0.9)
    for one in made:
        one.lasting, one.passing = share * one.between, (1.0 - share) * one.between
    return made


def _dense(name, table):
    if table["later"].nunique() < 2:
        return None
    tags = ["later", *(tag for tag in TAGS if tag in table)]
    table = table.assign(cell=table.groupby(tags).ngroup(), block=table.groupby(tags[-2:]).ngroup())
    keys = ["block", "machine", "cell"]
    rows = table.groupby(keys, as_index=False).agg({**dict.fromkeys(tags, "first"), "samples": "sum", "value": "sum"})
    rows = rows.assign(unit=rows.groupby(["block", "machine"]).ngroup()).rename(columns={"samples": "count"})
    totals = table.groupby("function")["samples"].sum()
    functions = totals.index[totals >= MIN_SAMPLES].tolist()
    value = table.pivot_table("value", keys, "function", "sum", fill_value=0.0)[functions].to_numpy(float)
    count = rows["count"].to_numpy(float)
    samples = value * (count / rows["value"].to_numpy(float))[:, None]
    everywhere = (samples.sum(axis=0) + 0.5) / (count.sum() + 1.0)
    expected = np.zeros_like(samples)
    for block in rows["block"].unique():
        here = (rows["block"] == block).to_numpy()
        expected[here] = (samples[here].sum(axis=0) + 1.0) / (count[here].sum() + 1.0 / everywhere)
    both, cell = expected * (1.0 - expected), rows["cell"].to_numpy()
    square, sampling, pairs, apart = 0.0, 0.0, 0.0, np.zeros_like(samples)
    for number in np.unique(cell):
        here = cell == number
        n, size = count[here, None], count[here].sum()
        apart[here] = samples[here] - n * samples[here].sum(axis=0) / size
        square = square + ((apart[here] / both[here]) ** 2).sum(axis=0)
        sampling = sampling + (n / both[here] * (1.0 - n / size)).sum(axis=0)
        pairs += (n**2).sum() - 2.0 * (n**3).sum() / size + (n**2).sum() ** 2 / size**2
    own, told = (square - sampling) / pairs, (count[:, None] * both).sum(axis=0)
    usual = max(float(np.median(own[told >= MIN_SAMPLES])), 0.0)
    inside = usual * count[:, None] * both
    support = ((inside / (1.0 + inside)) ** 2).sum(axis=0)
    between = np.maximum((own * support + usual * PRIOR) / (support + PRIOR), 0.0)
    cross, ways = 0.0, 0.0
    for unit in rows["unit"].unique():
        here = (rows["unit"] == unit).to_numpy()
        q, n = apart[here] / both[here], count[here]
        cross, ways = cross + q.sum(axis=0) ** 2 - (q**2).sum(axis=0), ways + n.sum() ** 2 - (n**2).sum()
    weight = np.where(told >= MIN_SAMPLES, told, 0.0)
    common, whole = float((weight * cross / ways).sum()), float((weight * np.maximum(own, 0.0)).sum())
    return DenseCells(name, functions, rows, samples, expected, between, usual, common, whole)
