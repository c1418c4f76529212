"""A fleet of three cells, small enough to be simulated many times."""

from models.fleet.world import Churn, Feature, Fleet, Population
from scenarios.files.schema import Analyses, Scenario, WSMeter

FLEET = Scenario(
    name="tiny",
    seed=3,
    horizon_s=1800.0,
    epoch_s=300.0,
    fleet=Fleet(20, machines_per_rack=5, racks_per_power_domain=2),
    population=Population(60, 40, heavyweights=8),
    churn=Churn(restarts_per_instance_day=10.0, exits_per_instance_day=5.0, drains_per_machine_day=5.0),
    feature=Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"}),
    cells=3,
    analyses=Analyses(WSMeter(machines=(4, 8), draws=5)),
)


def quiet(_what, _share):
    """Be told how far it is, and say nothing."""
