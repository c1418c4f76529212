"""Small profiled fleets that are simulated at once."""

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Fleet, Population, Service
from models.profiling.programs import build_programs
from models.profiling.served import Served, ServedType
from models.profiling.world import Collector, Kernel, ProfileWorld, Profiling
from sim.profiling.builds import build_builds
from sim.profiling.images import Layout, lay_out

DAY_S = 86400.0


def small_fleet() -> ProfileWorld:
    """Return a profiled fleet of two days."""
    profiling = Profiling(kernel=Kernel(start_s=DAY_S, waves=1), collector=Collector(one_in=8, round_s=7200.0))
    fleet = Fleet(16, machines_per_rack=4, racks_per_power_domain=2)
    return ProfileWorld(3, 2 * DAY_S, 300.0, fleet, Population(20, 12, heavyweights=4), profiling=profiling)


def serving_fleet() -> ProfileWorld:
    """Return a profiled fleet of a day with a service that is served."""
    fleet = Fleet(16, machines_per_rack=4, racks_per_power_domain=2)
    shop = Service("shop", 4, 2.0, 0.9, 0.01, instructions_per_request=4e10, utilisation=0.5, open_load=True)
    population = Population(20, 12, heavyweights=4, services=(shop,))
    profiling = Profiling(compiler=None, kernel=None, collector=Collector(one_in=8, round_s=7200.0))
    served = (Served("shop", types=(ServedType("view", 3.0, 0.5), ServedType("buy", 1.0, 2.0, swing=0.5))),)
    return ProfileWorld(3, DAY_S, 300.0, fleet, population, profiling=profiling, served=served)


def images() -> Layout:
    """Return the images of a fleet of eight machines and twelve programs."""
    world = ProfileWorld(3, 2 * DAY_S, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    programs = build_programs(world, build_jobs(world, build_machines(world)), list(world.fleet.platforms))
    return lay_out(world, programs, build_builds(world, programs))
