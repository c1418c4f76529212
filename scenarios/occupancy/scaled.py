"""A run whose number of servers changes: the law beside the truth, what was answered in time, and the cost."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.figures.occupancy.occupancy import draw_servers
from analysis.occupancy.changing import changing_law
from analysis.occupancy.curve import curve
from analysis.occupancy.percentiles import percentiles
from models.arrays import Floats
from scenarios.files.schema import QueueScenario
from scenarios.occupancy.machine import PushedBack, pushed_back
from scenarios.occupancy.occupancy import LogPercentiles
from scenarios.occupancy.truth import LawErrors, QueueTruth, errors, on_s
from scenarios.occupancy.unserved import Unserved, unserved
from scenarios.runs.disk import save
from scenarios.runs.rundir import Run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import share
from scenarios.views.section import Block, Place, Says, Section, Table, note_lines, table


@dataclass(frozen=True, slots=True)
class ServerCost:
    """The servers of a run up to its last departure."""

    server_hours: float
    """Servers × time, of those that were on or starting."""
    mean: float
    """Mean number on or starting."""
    fewest: int
    most: int
    changes: int
    """Times that the number of those on or starting changed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScaledConclusion(Conclusion):
    """What `wsc run` says of a queue's run whose servers come and go."""

    run: Path
    scenario: str
    seed: int
    counts: Mapping[str, int]
    scaled_by: str
    service_time_s: float
    queueing_time_s: float
    utilisation: float
    """By the law with the servers that were on, as is what stands above."""
    truth: QueueTruth
    errors: LawErrors
    percentiles: LogPercentiles
    unserved: Unserved
    cost: ServerCost
    machine: PushedBack | None
    """What the machine did that the servers are threads of."""
    figures: tuple[str, ...]

    def brief(self) -> str:
        """Return queueing time and cost in a line."""
        return f"queueing {self.queueing_time_s:.4g} s; {self.cost.server_hours:.4g} server hours by {self.scaled_by}"

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        values = {name: getattr(self, name) for name in ("service_time_s", "queueing_time_s", "utilisation")}
        return {
            "kind": "queue",
            "run": str(self.run),
            "scenario": self.scenario,
            "seed": self.seed,
            "counts": self.counts,
            "scaled_by": self.scaled_by,
            **values,
            **{name: asdict(getattr(self, name)) for name in ("truth", "errors", "unserved", "cost")},
            "percentiles": self.percentiles.payload(),
            "machine": None if self.machine is None else self.machine.payload(),
            "figures": list(self.figures),
        }

    def frame(self) -> pd.DataFrame:
        """Return service time, queueing time and utilisation by the law and in truth."""
        names = ("service_time_s", "queueing_time_s", "utilisation")
        rows = [(name, getattr(self, name), getattr(self.truth, name)) for name in names]
        return pd.DataFrame(rows, columns=["quantity", "law", "truth"])

    def section(self) -> Section:
        """Return what people see."""
        first = f"{self.scenario} (seed {self.seed}): {self.counts['requests']:,} requests served"
        blocks = (Says(f"{first}; servers by {self.scaled_by}"), *self.beside_truth(), *self.notes())
        return Section("", (*blocks, Place(f"tables and figures: {self.run}")))

    def beside_truth(self) -> Iterator[Block]:
        """Yield the law beside the truth, percentiles, what was not served, and the cost."""
        yield self._law()
        yield from self.percentiles.blocks(self.counts["requests"])
        yield from self.unserved.blocks()
        rows = [
            ("server hours", f"{self.cost.server_hours:,.4g}"),
            ("mean number", f"{self.cost.mean:,.4g}"),
            ("fewest and most", f"{self.cost.fewest} and {self.cost.most}"),
            ("changes", f"{self.cost.changes:,}"),
        ]
        yield table(("servers on or starting", "to the last departure"), rows, "the cost")
        if self.machine is not None:
            yield from self.machine.blocks()

    def notes(self) -> Iterator[Says]:
        """Yield what must be known to read the numbers."""
        yield from note_lines(self.unserved.notes())
        yield from note_lines(["no bounds and no replay on other numbers of servers: the number changes"])

    def _law(self) -> Table:
        rows = []
        for name in ("service", "queueing"):
            off = getattr(self.errors, name)
            true = (f"{getattr(self.truth, f'{name}_time_s'):,.1f} s", f"{round(off, 4) + 0.0:+.2%} of service")
            estimate = f"{getattr(self, f'{name}_time_s'):,.1f} s"
            rows.append((f"{name} time", estimate, *(true if math.isfinite(off) else ("", ""))))
        busy, truly = self.utilisation, self.truth.utilisation
        true = (f"{truly:.2%}", f"{round(100 * (busy - truly), 2) + 0.0:+.2f} points")
        rows.append(("utilisation", share(busy, unknown="unknown"), *(true if math.isfinite(truly) else ("", ""))))
        return table(("aggregate over all served", "by the law", "truth", "error"), rows, "the Occupancy Law")


def measure_scaled(scenario: QueueScenario, run: Run) -> ScaledConclusion:
    """Return what is concluded of a run whose servers come and go; its figure goes into the run's directory."""
    log, servers = run.table("requests", ["arrival_s", "departure_s"]), run.table("servers")
    arrival_s, departure_s = log["arrival_s"].to_numpy(), log["departure_s"].to_numpy()
    present = curve(arrival_s, departure_s)
    total = changing_law(present, servers["time_s"].to_numpy(), servers["servers"].to_numpy())
    true = _truth(run, total.server_time_s, on_machine=scenario.machine is not None)
    response = percentiles(departure_s - arrival_s, arrival_s)
    assert scenario.scaling is not None
    rule = scenario.scaling.autoscaler
    return ScaledConclusion(
        run=run.path,
        scenario=scenario.name,
        seed=scenario.seed,
        counts=run.manifest["counts"],
        scaled_by="schedule" if rule is None else f"the rule {rule.rule}, {rule.target:g}",
        service_time_s=total.service_time_s,
        queueing_time_s=total.queueing_time_s,
        utilisation=total.utilisation,
        truth=true,
        errors=errors(total.service_time_s, total.queueing_time_s, true),
        percentiles=LogPercentiles(response, ()),
        unserved=unserved(run, log, scenario.analyses.occupancy.within_s),
        cost=_cost(servers, present.end_s),
        machine=None if scenario.machine is None else pushed_back(run, scenario.machine),
        figures=tuple(map(str, save(draw_servers(present, servers), run.path / "servers"))),
    )


def _truth(run: Run, server_time_s: float, *, on_machine: bool) -> QueueTruth:
    """Return what the servers really did, of which none works on anything else.

    They are of speed 1, or as fast as their machine, whose time is split as the work is.
    """
    if not run.has("truth_requests"):
        return QueueTruth()
    work = run.table("truth_requests", ["request", "arrival_s", "departure_s", "demand_s"])
    served = work[work["request"] >= 0]  # the others timed out in service
    service_s = float(served["demand_s"].sum())
    response_s = float((served["departure_s"] - served["arrival_s"]).sum())
    busy_s = whole_s = float(work["demand_s"].sum())
    if on_machine:
        cpu = run.table("truth_cpu")
        busy_s = float(cpu["utilisation"].to_numpy() @ on_s(run, cpu["start_s"].to_numpy(), cpu["end_s"].to_numpy()))
        service_s *= busy_s / whole_s
    return QueueTruth(busy_s / server_time_s, service_s, response_s - service_s)


def _cost(servers: pd.DataFrame, end_s: float) -> ServerCost:
    """Return what the servers of table `servers` cost up to a time."""
    ordered = (servers["servers"] + servers["starting"]).to_numpy()
    edges_s: Floats = np.minimum(np.append(servers["time_s"].to_numpy(), end_s), end_s)
    total_s = float(ordered @ np.diff(edges_s))
    return ServerCost(
        total_s / 3600.0,
        total_s / (end_s - edges_s[0]),
        int(ordered.min()),
        int(ordered.max()),
        int((np.diff(ordered) != 0).sum()),
    )
