import numpy as np

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Fleet, Population, Recording, World
from sim.fleet.day import day_of, prepare
from sim.fleet.timeline import from_placement

WORLD = World(3, 900.0, 300.0, Fleet(20), Population(60, 50), recording=Recording(instance_epoch_share=1.0))


def test_a_day_has_machines_jobs_stays_and_factors_of_every_epoch():
    day = prepare(WORLD)
    assert (day.machines.count, day.jobs.count, day.order.size) == (20, 60, 443)
    assert day.load.shape == day.phase.shape == (3, 60)
    assert day.traced.all()


def test_stays_are_in_the_order_of_machines():
    machines = build_machines(WORLD)
    placed = from_placement(WORLD, 20, job=np.array([5, 5, 3]), machine=np.array([7, 0, 7]))
    assert day_of(WORLD, machines, build_jobs(WORLD, machines), placed).order.tolist() == [1, 0, 2]
