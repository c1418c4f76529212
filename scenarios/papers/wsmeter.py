"""The rows of WSMeter (Lee et al. 2018, ASPLOS): which run each needs and how its numbers come from it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.criteria import number, numbers, rows
from analysis.figures.wsmeter import (
    cost,
    customer,
    dependence,
    motivation,
    plans,
    sampling,
    selection,
    studies,
    throughput,
)
from models.metrics import MetricName
from scenarios.papers.evidence import Compute, Outcome, Row, Sources

UPGRADE, DVFS, SERVICES, LOCAL, TODAY = "cpu_upgrade", "dvfs_policy", "customer_services", "empty_cluster", "today"
WSCS = (1, 2)
"""Seeds of the two WSCs of one universe, as in the scenario two_wscs."""

OTHERS = (2, 3, 4, 5)
"""Seeds of further fleets of a scenario, beside the shipped one that is judged: what one fleet says of all."""
LESS_CONCENTRATED = {"population.heavyweights": 120}
"""A fleet in which three times as many heavyweights hold the same share of the quota."""

Measure = Callable[..., pd.DataFrame]
Numbers = tuple[tuple[str, str, float], ...]
"""Measured numbers: name, series, and x or NaN for a single one."""
Draw = Callable[[pd.DataFrame, pd.DataFrame], Figure]


@dataclass(frozen=True, slots=True)
class FromHalves:
    """A row that is measured on the two halves of one recorded fleet; `takes` names the tables it looks at."""

    scenario: str
    measure: Measure
    draw: Draw | None
    takes: tuple[str, ...] = ("current", "new", "jobs")
    judged: MetricName = "ipc"
    drawn: MetricName = "ipc"
    by_seed: Numbers = ()
    """Numbers that are also measured, never judged, on `OTHERS`."""
    spread_out: tuple[str, ...] = ()
    """Single numbers that are also measured, never judged, on a fleet that is `LESS_CONCENTRATED`."""

    def __call__(self, sources: Sources, _paper: pd.DataFrame) -> Outcome:
        """Measure in the metric that is judged, and in that of the drawing where it is another."""
        judged = self.measured(sources, self.judged)
        beside, table = self._beside(sources, judged)
        made = pd.concat([judged, *beside], ignore_index=True)
        if self.drawn == self.judged:
            return Outcome(made, draw=self.draw, table=table)
        note = (
            f"the paper's numbers are {self.drawn.upper()}, and so is the picture; criteria are put to "
            f"{self.judged.upper()}, which a slower clock does not flatter"
        )
        drawn = self.measured(sources, self.drawn)
        return Outcome(made, drawn, (self.judged, self.drawn), self.draw, note, table)

    def measured(self, sources: Sources, metric: MetricName, **overrides: object) -> pd.DataFrame:
        """Return the measured table in one metric."""
        halves = sources.halves(self.scenario, metric, **overrides)
        return self.measure(**{name: getattr(halves, name) for name in self.takes})

    def _beside(self, sources: Sources, judged: pd.DataFrame) -> tuple[list[pd.DataFrame], pd.DataFrame | None]:
        """Return what other fleets say: as measured rows, and as a table of seeds; the fleet that is judged first."""
        parts, table = list[pd.DataFrame](), None
        if self.by_seed:
            every = {1: judged} | {seed: self.measured(sources, self.judged, seed=seed) for seed in OTHERS}
            table = pd.DataFrame(
                [
                    {"seed": seed, **{name: number(of, series, x) for name, series, x in self.by_seed}}
                    for seed, of in every.items()
                ]
            )
            parts += [rows(f"{name}_by_seed", table["seed"], table[name]) for name, _, _ in self.by_seed]
        if self.spread_out:
            of = self.measured(sources, self.judged, **LESS_CONCENTRATED)
            parts.append(numbers(**{f"{name}_spread_out": number(of, name) for name in self.spread_out}))
        return parts, table


def _dvfs(
    what: str,
    measure: Measure,
    draw: Draw,
    *takes: str,
    by_seed: Numbers = (),
    spread_out: tuple[str, ...] = (),
) -> Row:
    """Return a row about the DVFS policy: drawn in IPC as printed, judged on instructions per second."""
    kept = takes or ("current", "new")
    of = FromHalves(DVFS, measure, draw, kept, judged="ips", by_seed=by_seed, spread_out=spread_out)
    return Row(what, (DVFS,), of)


def _upgrade(
    what: str,
    measure: Measure,
    draw: Draw | None,
    *takes: str,
    by_seed: Numbers = (),
    spread_out: tuple[str, ...] = (),
) -> Row:
    kept = takes or ("current", "new", "jobs")
    return Row(what, (UPGRADE,), FromHalves(UPGRADE, measure, draw, kept, by_seed=by_seed, spread_out=spread_out))


def _jobs_of_two(measure: Measure, draw: Draw) -> Compute:
    """Return how a row about the jobs of two WSCs is computed."""

    def compute(sources: Sources, _paper: pd.DataFrame) -> Outcome:
        first, second = (sources.fleet(TODAY, "ipc", seed=seed) for seed in WSCS)
        return Outcome(measure(first.jobs, second.jobs), draw=draw)

    return compute


def _fig6(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    first, second = (sources.fleet(TODAY, "ipc", seed=seed) for seed in WSCS)
    return Outcome(selection.measure_fig6(first.current, first.jobs, second.jobs), draw=selection.fig6)


def _baseline(_sources: Sources, paper: pd.DataFrame) -> Outcome:
    return Outcome(studies.measure_baseline(number(paper, "cv15"), number(paper, "cv13")))


def _table2(_sources: Sources, paper: pd.DataFrame) -> Outcome:
    note = "the paper rounds the continuous optimum up to 70 instances; 69 (20 + 49 or 21 + 48) suffice"
    measured = customer.measure_table2(customer.printed_services(paper), number(paper, "target_margin"))
    return Outcome(measured, note=note)


def _table2_local(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    fleet, local = (sources.halves(name, "requests_per_s").only(("compute",)) for name in (SERVICES, LOCAL))
    measured = customer.measure_table2_local(fleet.current, fleet.new, local.current, local.new)
    return Outcome(measured, draw=customer.table2_local)


def _table3(sources: Sources, paper: pd.DataFrame) -> Outcome:
    services = customer.printed_services(paper)
    observed = {job: int(number(paper, f"observed_{job}")) for job in customer.SERVICES}
    margins = customer.measure_table3_margins(customer.printed_trials(paper), services, observed)
    halves = sources.halves(SERVICES, "requests_per_s").only(customer.SERVICES)
    trials = customer.measure_table3_trials(halves.current, halves.new)
    return Outcome(pd.concat([margins, trials], ignore_index=True))


def _ipc_vs_throughput(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    changes = {}
    for scenario in throughput.FEATURES:
        ipc, served = (sources.halves(scenario, metric) for metric in ("ipc", "requests_per_cpu_s"))
        changes[scenario] = throughput.changes_of_both((ipc.current, ipc.new), (served.current, served.new))
    return Outcome(
        throughput.measure_ipc_vs_throughput(changes[UPGRADE], changes[DVFS]), draw=throughput.ipc_vs_throughput
    )


WSMETER: dict[str, Row] = {
    "wsmeter/fig1": _dvfs("shares of jobs that gain and lose", motivation.measure_fig1, motivation.fig1),
    "wsmeter/fig2": _dvfs(
        "instances of a gaining and a losing job, chosen in each metric by itself",
        motivation.measure_fig2,
        motivation.fig2,
    ),
    "wsmeter/fig3": _dvfs("machines of the old and the new WSC", motivation.measure_fig3, motivation.fig3),
    "wsmeter/fig4": Row("jobs on two WSCs", ("two_wscs",), _jobs_of_two(selection.measure_fig4, selection.fig4)),
    "wsmeter/fig5": Row(
        "quota of common jobs, and how few jobs hold it",
        ("two_wscs",),
        _jobs_of_two(selection.measure_fig5, selection.fig5),
    ),
    "wsmeter/fig6": Row("coverage and deviation of the top N jobs", ("two_wscs",), _fig6),
    "wsmeter/fig7": _dvfs("sample means of 1 and 100 machines", sampling.measure_fig7, sampling.fig7, "current"),
    "wsmeter/fig8": _dvfs(
        "heavyweights against their co-runners", dependence.measure_fig8, dependence.fig8, "current", "jobs"
    ),
    "wsmeter/fig9": _dvfs(
        "correlation between heavyweights by rack", dependence.measure_fig9, dependence.fig9, "current", "jobs"
    ),
    "wsmeter/fig11": _dvfs(
        "normality of means of 20 and of 4 instances", sampling.measure_fig11, sampling.fig11, "current", "jobs"
    ),
    "wsmeter/fig12": _dvfs(
        "plans for 50 to 200 jobs, at least 4 or 20 instances",
        plans.measure_fig12,
        plans.fig12,
        "current",
        "jobs",
        spread_out=("cost_growth_min4", "margin_min20_max"),
    ),
    "wsmeter/fig13": _dvfs(
        "coverage and margin over cluster size", cost.measure_fig13, cost.fig13, "current", "new", "jobs"
    ),
    "wsmeter/fig16": _upgrade("margin over cost: baseline, WSMeter, ideal", cost.measure_fig16, cost.fig16),
    "wsmeter/fig17": _upgrade("CPU upgrade by the baseline", studies.measure_fig17, studies.fig17),
    "wsmeter/fig18": _upgrade(
        "CPU upgrade by WSMeter",
        studies.measure_fig18,
        studies.fig18,
        by_seed=(
            ("includes_new_widened", "includes_new_widened", nan),
            ("includes_new_widened_high", "includes_new_widened_high", nan),
        ),
    ),
    "wsmeter/fig19": _dvfs(
        "DVFS policy by WSMeter",
        studies.measure_fig19,
        studies.fig19,
        "current",
        "new",
        "jobs",
        by_seed=(
            ("excludes_current_400", "excludes_current", 400),
            ("excludes_current_low_400", "excludes_current_low_400", nan),
            ("change_covered", "change_covered", nan),
            ("margin_400", "margin", 400),
        ),
    ),
    "wsmeter/table1": _upgrade(
        "ideal cluster sizes",
        plans.measure_table1,
        None,
        "current",
        "jobs",
        spread_out=("margin_over_target", "machines_growth"),
    ),
    "wsmeter/table2": Row("plan for a customer's two services", (), _table2),
    "wsmeter/table2-local": Row("the optimisation on an empty cluster", (SERVICES, LOCAL), _table2_local),
    "wsmeter/table3": Row("three trials of the customer's plan", (SERVICES,), _table3),
    "wsmeter/baseline": Row("the baseline's arithmetic", (), _baseline),
    "wsmeter/efficiency": _upgrade(
        "machines of the baseline over WSMeter's",
        cost.measure_efficiency,
        cost.efficiency,
        by_seed=(
            ("efficiency_low_min", "efficiency_low_min", nan),
            ("efficiency_25", "efficiency", 25),
            ("efficiency_50", "efficiency", 50),
        ),
    ),
    "wsmeter/ipc-vs-throughput": Row("IPC against user-level throughput", (UPGRADE, DVFS), _ipc_vs_throughput),
}
"""Every figure and table of the paper that shows numbers, by id."""
