"""The rows of WSMeter (Lee et al. 2018, ASPLOS): which run each is measured on, what measures and what draws it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

import pandas as pd

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
from analysis.figures.wsmeter.draws import Halves
from models.fleet.metrics import MetricName
from scenarios.papers.rows import ArithmeticRow, Draw, MeasuredRow, Reproduction, Row
from scenarios.papers.sources import Sources

UPGRADE, DVFS, SERVICES, LOCAL, TODAY = "cpu_upgrade", "dvfs_policy", "customer_services", "empty_cluster", "today"
WSCS = (1, 2)
"""Seeds of the two WSCs of one universe, as in the scenario two_wscs."""

OTHERS = (2, 3, 4, 5)
"""Seeds of further fleets of a scenario, beside the shipped one that is judged: what one fleet says of all."""
LESS_CONCENTRATED = {"population.heavyweights": 120}
"""A fleet in which three times as many heavyweights hold the same share of the quota."""

Numbers = tuple[tuple[str, str, float], ...]
"""Measured numbers: name, series, and x or NaN for a single one."""


@dataclass(frozen=True, slots=True)
class OnHalves(Row):
    """A row that is measured on the two halves of one recorded fleet, that of its one scenario."""

    measure: Callable[[Halves], pd.DataFrame]
    draw: Draw | None
    judged: MetricName = "ipc"
    drawn: MetricName = "ipc"
    """The metric of the paper's numbers."""
    by_seed: Numbers = ()
    """Numbers that are also measured, never judged, on `OTHERS`."""
    spread_out: tuple[str, ...] = ()
    """Single numbers that are also measured, never judged, on a fleet that is `LESS_CONCENTRATED`."""

    def outcome(self, sources: Sources) -> Reproduction:
        """Measure in the metric that is judged, and in that of the drawing where it is another."""
        judged = self.measured(sources, self.judged)
        beside, table = self._beside(sources, judged)
        measured = pd.concat([judged, *beside], ignore_index=True)
        if self.drawn == self.judged:
            return Reproduction(measured, draw=self.draw, table=table)
        note = (
            f"the paper's numbers are {self.drawn.upper()}, and so is the picture; criteria are put to "
            f"{self.judged.upper()}, which a slower clock does not flatter"
        )
        drawn = self.measured(sources, self.drawn)
        return Reproduction(measured, drawn, (self.judged, self.drawn), self.draw, note, table)

    def measured(self, sources: Sources, metric: MetricName, **overrides: object) -> pd.DataFrame:
        """Return the measured table in one metric."""
        return self.measure(sources.halves(self.scenarios[0], metric, **overrides))

    def _beside(self, sources: Sources, judged: pd.DataFrame) -> tuple[list[pd.DataFrame], pd.DataFrame | None]:
        """Return what other fleets say: as measured rows, and as a table of seeds; the fleet that is judged first."""
        parts, table = list[pd.DataFrame](), None
        if self.by_seed:
            fleets = {1: judged} | {seed: self.measured(sources, self.judged, seed=seed) for seed in OTHERS}
            table = pd.DataFrame(
                [
                    {"seed": seed, **{name: number(measured, series, x) for name, series, x in self.by_seed}}
                    for seed, measured in fleets.items()
                ]
            )
            parts += [rows(f"{name}_by_seed", table["seed"], table[name]) for name, _, _ in self.by_seed]
        if self.spread_out:
            other = self.measured(sources, self.judged, **LESS_CONCENTRATED)
            parts.append(numbers(**{f"{name}_spread_out": number(other, name) for name in self.spread_out}))
        return parts, table


def _wscs(sources: Sources) -> tuple[Halves, Halves]:
    """Return two WSCs of one universe."""
    first, second = (sources.fleet(TODAY, "ipc", seed=seed) for seed in WSCS)
    return first, second


def _fig4(sources: Sources) -> pd.DataFrame:
    first, second = _wscs(sources)
    return selection.measure_fig4(first.jobs, second.jobs)


def _fig5(sources: Sources) -> pd.DataFrame:
    first, second = _wscs(sources)
    return selection.measure_fig5(first.jobs, second.jobs)


def _fig6(sources: Sources) -> pd.DataFrame:
    first, second = _wscs(sources)
    return selection.measure_fig6(first, second.jobs)


def _table2_local(sources: Sources) -> pd.DataFrame:
    """Measure the customer's service that computes, in the fleet and alone on an empty cluster."""
    fleet, local = (sources.halves(name, "requests_per_s").only(("compute",)) for name in (SERVICES, LOCAL))
    return customer.measure_table2_local(fleet, local)


def _ipc_vs_throughput(sources: Sources) -> pd.DataFrame:
    upgrade, policy = (
        throughput.changes_of_both(sources.halves(name, "ipc"), sources.halves(name, "requests_per_cpu_s"))
        for name in throughput.FEATURES
    )
    return throughput.measure_ipc_vs_throughput(upgrade, policy)


def _baseline(paper: pd.DataFrame) -> pd.DataFrame:
    return studies.measure_baseline(number(paper, "cv15"), number(paper, "cv13"))


def _table2(paper: pd.DataFrame) -> pd.DataFrame:
    return customer.measure_table2(customer.printed_services(paper), number(paper, "target_margin"))


def _table3(sources: Sources, paper: pd.DataFrame) -> pd.DataFrame:
    """Return margins that follow from the printed trials, and those of trials of the simulated services."""
    halves = sources.halves(SERVICES, "requests_per_s").only(customer.SERVICES)
    services = customer.printed_services(paper)
    observed = {job: int(number(paper, f"observed_{job}")) for job in customer.SERVICES}
    margins = customer.measure_table3_margins(customer.printed_trials(paper), services, observed)
    return pd.concat([margins, customer.measure_table3_trials(halves)], ignore_index=True)


ROWS: tuple[Row, ...] = (
    OnHalves(
        "wsmeter/fig1",
        "shares of jobs that gain and lose",
        (DVFS,),
        motivation.measure_fig1,
        motivation.fig1,
        judged="ips",
    ),
    OnHalves(
        "wsmeter/fig2",
        "instances of a gaining and a losing job, chosen in each metric by itself",
        (DVFS,),
        motivation.measure_fig2,
        motivation.fig2,
        judged="ips",
    ),
    OnHalves(
        "wsmeter/fig3",
        "machines of the old and the new WSC",
        (DVFS,),
        motivation.measure_fig3,
        motivation.fig3,
        judged="ips",
    ),
    MeasuredRow("wsmeter/fig4", "jobs on two WSCs", ("two_wscs",), _fig4, selection.fig4),
    MeasuredRow(
        "wsmeter/fig5",
        "quota of common jobs, and how few jobs hold it",
        ("two_wscs",),
        _fig5,
        selection.fig5,
    ),
    MeasuredRow(
        "wsmeter/fig6",
        "coverage and deviation of the top N jobs",
        ("two_wscs",),
        _fig6,
        selection.fig6,
    ),
    OnHalves(
        "wsmeter/fig7",
        "sample means of 1 and 100 machines",
        (DVFS,),
        sampling.measure_fig7,
        sampling.fig7,
        judged="ips",
    ),
    OnHalves(
        "wsmeter/fig8",
        "heavyweights against their co-runners",
        (DVFS,),
        dependence.measure_fig8,
        dependence.fig8,
        judged="ips",
    ),
    OnHalves(
        "wsmeter/fig9",
        "correlation between heavyweights by rack",
        (DVFS,),
        dependence.measure_fig9,
        dependence.fig9,
        judged="ips",
    ),
    OnHalves(
        "wsmeter/fig11",
        "normality of means of 20 and of 4 instances",
        (DVFS,),
        sampling.measure_fig11,
        sampling.fig11,
        judged="ips",
    ),
    OnHalves(
        "wsmeter/fig12",
        "plans for 50 to 200 jobs, at least 4 or 20 instances",
        (DVFS,),
        plans.measure_fig12,
        plans.fig12,
        judged="ips",
        spread_out=("cost_growth_min4", "margin_min20_max"),
    ),
    OnHalves(
        "wsmeter/fig13",
        "coverage and margin over cluster size",
        (DVFS,),
        cost.measure_fig13,
        cost.fig13,
        judged="ips",
    ),
    OnHalves(
        "wsmeter/fig16",
        "margin over cost: baseline, WSMeter, ideal",
        (UPGRADE,),
        cost.measure_fig16,
        cost.fig16,
    ),
    OnHalves(
        "wsmeter/fig17",
        "CPU upgrade by the baseline",
        (UPGRADE,),
        studies.measure_fig17,
        studies.fig17,
    ),
    OnHalves(
        "wsmeter/fig18",
        "CPU upgrade by WSMeter",
        (UPGRADE,),
        studies.measure_fig18,
        studies.fig18,
        by_seed=(
            ("includes_new_widened", "includes_new_widened", nan),
            ("includes_new_widened_high", "includes_new_widened_high", nan),
        ),
    ),
    OnHalves(
        "wsmeter/fig19",
        "DVFS policy by WSMeter",
        (DVFS,),
        studies.measure_fig19,
        studies.fig19,
        judged="ips",
        by_seed=(
            ("excludes_current_400", "excludes_current", 400),
            ("excludes_current_low_400", "excludes_current_low_400", nan),
            ("change_covered", "change_covered", nan),
            ("margin_400", "margin", 400),
        ),
    ),
    OnHalves(
        "wsmeter/table1",
        "ideal cluster sizes",
        (UPGRADE,),
        plans.measure_table1,
        None,
        spread_out=("margin_over_target", "machines_growth"),
    ),
    ArithmeticRow(
        "wsmeter/table2",
        "plan for a customer's two services",
        (),
        _table2,
        note="the paper rounds the continuous optimum up to 70 instances; 69 (20 + 49 or 21 + 48) suffice",
        printed=True,
    ),
    MeasuredRow(
        "wsmeter/table2-local",
        "the optimisation on an empty cluster",
        (SERVICES, LOCAL),
        _table2_local,
        customer.table2_local,
    ),
    MeasuredRow("wsmeter/table3", "three trials of the customer's plan", (SERVICES,), _table3, printed=True),
    ArithmeticRow("wsmeter/baseline", "the baseline's arithmetic", (), _baseline, printed=True),
    OnHalves(
        "wsmeter/efficiency",
        "machines of the baseline over WSMeter's",
        (UPGRADE,),
        cost.measure_efficiency,
        cost.efficiency,
        by_seed=(
            ("efficiency_low_min", "efficiency_low_min", nan),
            ("efficiency_25", "efficiency", 25),
            ("efficiency_50", "efficiency", 50),
        ),
    ),
    MeasuredRow(
        "wsmeter/ipc-vs-throughput",
        "IPC against user-level throughput",
        (UPGRADE, DVFS),
        _ipc_vs_throughput,
        throughput.ipc_vs_throughput,
    ),
)
"""Every figure and table of the paper that shows numbers."""
