"""Places: data centres of whole power domains, and kernels in equal waves."""

from dataclasses import replace

import numpy as np

from models.fleet.inventory import build_machines
from models.fleet.world import Fleet
from models.profiling.world import Kernel
from sim.profiling.register import place, platform_names
from tests.helpers.programs_world import DAY_S, WORLD, asked


def placed(world):
    return place(world, build_machines(world))


def test_data_centres_hold_their_share_of_whole_domains():
    world = replace(
        asked(datacentres={"a": 0.5, "b": 0.3, "c": 0.2}),
        fleet=Fleet(200, machines_per_rack=5, racks_per_power_domain=2),
    )
    made, domain = placed(world), build_machines(world).power_domain
    assert np.bincount(made.datacentre).tolist() == [100, 60, 40]
    assert all(np.unique(made.datacentre[domain == number]).size == 1 for number in np.unique(domain))


def test_kernels_come_in_equal_waves():
    made = placed(replace(asked(kernel=Kernel(start_s=DAY_S, waves=2, interval_s=DAY_S))))
    times, counts = np.unique(made.kernel_from_s, return_counts=True)
    assert times.tolist() == [DAY_S, 2 * DAY_S]
    assert counts.tolist() == [6, 6]


def test_waves_after_the_horizon_never_come():
    made = placed(asked(kernel=Kernel(start_s=3 * DAY_S, waves=2, interval_s=DAY_S)))
    assert np.isnan(made.kernel_from_s).sum() == 6
    assert np.isnan(placed(asked(kernel=None)).kernel_from_s).all()


def test_platforms_after_the_upgrade_are_known_before_it():
    made = placed(WORLD)
    assert made.platforms == platform_names(WORLD) == ("haswell_2698v3", "broadwell_2698v4", "skylake_6148")
    assert {tuple(pair) for pair in made.platform.tolist()} == {(0, 2), (1, 1)}
