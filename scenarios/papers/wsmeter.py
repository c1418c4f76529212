"""The rows of WSMeter (Lee et al. 2018, ASPLOS): which run each is measured on, what measures and what draws it."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from analysis.figures.criteria import number
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
from scenarios.papers.rows import WORLDS, ArithmeticRow, Draw, MeasuredRow, Pool, Reproduction, Row
from scenarios.papers.sources import Sources

PER_SECOND = "_ips"
"""What names of numbers in instructions per second end in."""
BOTH = "as printed, in instructions per cycle (IPC), which a slower clock flatters; below also per second (IPS)"
UPGRADE, DVFS, SERVICES, LOCAL, TODAY = "cpu_upgrade", "dvfs_policy", "customer_services", "empty_cluster", "today"


@dataclass(frozen=True, slots=True)
class OnHalves(Row):
    """A row that is measured on the two halves of one recorded fleet, that of its one scenario."""

    measure: Callable[[Halves], pd.DataFrame]
    draw: Draw | None
    pools: Pool | None = None
    note: str = ""
    also: Callable[[Halves], pd.DataFrame] | None = None
    """What is also measured in instructions per second, of which the paper prints nothing: its single numbers are told
    beside, under names that end in `PER_SECOND`."""
    table: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    """Further numbers of what was measured, to be printed row by row."""

    @property
    def worlds(self) -> tuple[int, ...]:
        """Seeds of the worlds that it is judged on."""
        return WORLDS

    @property
    def pool(self) -> Pool | None:
        """What takes the draws of all worlds together."""
        return self.pools

    def outcome(self, sources: Sources) -> Reproduction:
        """Measure in instructions per cycle, as the paper does."""
        measured = self.measure(sources.halves(self.scenarios[0], "ipc"))
        if self.also is None:
            table = None if self.table is None else self.table(measured)
            return Reproduction(measured, self.draw, self.note, table)
        other = self.also(sources.halves(self.scenarios[0], "ips"))
        other = other[other["x"].isna()]
        other = other.assign(series=[f"{name}{PER_SECOND}" for name in other["series"]])
        shown = [name.removesuffix(PER_SECOND) for name in other["series"]]
        cells = [{"": name, "IPC": number(measured, name)} for name in shown]
        table = pd.DataFrame(cells).assign(IPS=other["value"].to_numpy())
        return Reproduction(pd.concat([measured, other], ignore_index=True), self.draw, BOTH, table)


def _wscs(sources: Sources) -> tuple[Halves, Halves]:
    """Return two WSCs of one universe; in the first world with the seeds 1 and 2, as in the scenario two_wscs."""
    first, second = (sources.fleet(TODAY, "ipc", seed=2 * sources.world - one) for one in (1, 0))
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
        also=motivation.measure_fig1,
    ),
    OnHalves(
        "wsmeter/fig2",
        "instances of a gaining and a losing job, chosen in each metric by itself",
        (DVFS,),
        motivation.measure_fig2,
        motivation.fig2,
        also=motivation.measure_fig2,
    ),
    OnHalves(
        "wsmeter/fig3",
        "machines of the old and the new WSC",
        (DVFS,),
        motivation.measure_fig3,
        motivation.fig3,
        also=motivation.measure_fig3,
    ),
    MeasuredRow("wsmeter/fig4", "jobs on two WSCs", ("two_wscs", TODAY), _fig4, selection.fig4),
    MeasuredRow(
        "wsmeter/fig5",
        "quota of common jobs, and how few jobs hold it",
        ("two_wscs", TODAY),
        _fig5,
        selection.fig5,
    ),
    MeasuredRow(
        "wsmeter/fig6",
        "coverage and deviation of the top N jobs",
        ("two_wscs", TODAY),
        _fig6,
        selection.fig6,
    ),
    OnHalves(
        "wsmeter/fig7",
        "sample means of 1 and 100 machines",
        (DVFS,),
        sampling.measure_fig7,
        sampling.fig7,
    ),
    OnHalves(
        "wsmeter/fig8",
        "heavyweights against their co-runners",
        (DVFS,),
        dependence.measure_fig8,
        dependence.fig8,
    ),
    OnHalves(
        "wsmeter/fig9",
        "correlation between heavyweights by rack",
        (DVFS,),
        dependence.measure_fig9,
        dependence.fig9,
    ),
    OnHalves(
        "wsmeter/fig11",
        "normality of means of 20 and of 4 instances",
        (DVFS,),
        sampling.measure_fig11,
        sampling.fig11,
    ),
    OnHalves(
        "wsmeter/fig12",
        "plans for 50 to 200 jobs, at least 4 or 20 instances",
        (DVFS,),
        plans.measure_fig12,
        plans.fig12,
    ),
    OnHalves(
        "wsmeter/fig13",
        "coverage and margin over cluster size",
        (DVFS,),
        cost.measure_fig13,
        cost.fig13,
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
        studies.pool_fig17,
    ),
    OnHalves(
        "wsmeter/fig18",
        "CPU upgrade by WSMeter",
        (UPGRADE,),
        studies.measure_fig18,
        studies.fig18,
        studies.pool_fig18,
        "the published formula leaves out what jobs on a machine have in common; adjusted, as of wsc effect, does not",
        table=studies.inclusion_by_estimator,
    ),
    OnHalves(
        "wsmeter/fig19",
        "DVFS policy by WSMeter",
        (DVFS,),
        studies.measure_fig19,
        studies.fig19,
        studies.pool_fig19,
        also=studies.changes,
    ),
    OnHalves(
        "wsmeter/table1",
        "ideal cluster sizes",
        (UPGRADE,),
        plans.measure_table1,
        None,
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
    MeasuredRow(
        "wsmeter/table3",
        "three trials of the customer's plan",
        (SERVICES,),
        _table3,
        printed=True,
        pools=customer.pool_table3,
    ),
    ArithmeticRow("wsmeter/baseline", "the baseline's arithmetic", (), _baseline, printed=True),
    OnHalves(
        "wsmeter/efficiency",
        "machines of the baseline over WSMeter's",
        (UPGRADE,),
        cost.measure_efficiency,
        cost.efficiency,
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
