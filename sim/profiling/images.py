"""Images: the builds of programs, what they are made of, and the repository of unstripped binaries and sources."""

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from models.profiling.programs import Programs
from models.profiling.world import ProfileWorld
from sim.profiling.addresses import DAEMON, Addresses, lay_out_images
from sim.profiling.builds import Builds, build_builds
from sim.profiling.sources import Columns, contents, source_columns, symbol_columns

DAEMON_BUILT_S = -30 * 86400.0
"""When the daemon was built, relative to the start of the horizon."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Everything about the images of a world: programs, builds and addresses, and the tables that follow.

    The daemon's image and its build, which every machine runs, come last.

    Examples
    --------
    >>> made = example()
    >>> sorted(made.trait_columns()), made.build_columns()["kind"][0]
    (['floating_point', 'function', 'image'], 'kernel')
    """

    world: ProfileWorld
    programs: Programs
    builds: Builds
    addresses: Addresses

    def build_columns(self) -> Columns:
        """Return the columns of table `builds`, the daemon's build last."""
        builds, compiler = self.builds, self.world.profiling.compiler
        old = compiler.old if compiler else builds.compiler[0]
        identity = hashlib.blake2b(f"{DAEMON} {self.world.seed}".encode(), digest_size=20).hexdigest()
        images = self.addresses.image_of_build
        return {
            "build": np.arange(images.size),
            "build_id": [*builds.build_id, identity],
            "image": [self.addresses.images[image] for image in images],
            "kind": [self.addresses.kinds[image] for image in images],
            "revision": [*builds.revision, "r1000"],
            "compiler": [*builds.compiler, old],
            "builder": [*builds.builder, builds.builder[0]],
            "built_s": np.append(builds.built_s, DAEMON_BUILT_S),
        }

    def symbol_columns(self) -> Columns:
        """Return the columns of table `symbols`, of the builds that reached the repository."""
        files = contents(self.world, self.addresses, self.programs, self.builds)
        return symbol_columns(self.addresses, files, np.append(self.builds.stored, True))

    def source_columns(self) -> Columns:
        """Return the columns of table `sources`: all files that those builds were made from."""
        files = contents(self.world, self.addresses, self.programs, self.builds)
        return source_columns(self.addresses, files, np.append(self.builds.stored, True))

    def trait_columns(self) -> Columns:
        """Return the columns of table `function_traits`; code generated at run time was never in a binary."""
        code = self.addresses.code
        known = np.flatnonzero(code.image != self.addresses.generated)
        images = pa.array([self.addresses.images[image] for image in code.image[known]], pa.string())
        return {
            "image": images,
            "function": [code.name[function] for function in known],
            "floating_point": code.floating_point[known],
        }


def lay_out(world: ProfileWorld, programs: Programs, builds: Builds) -> Layout:
    """Return the images of a world.

    Parameters
    ----------
    world : seed, and the compiler in use at first
    programs, builds : what was built from what

    Examples
    --------
    >>> of = example()
    >>> layout = lay_out(of.world, of.programs, of.builds)
    >>> layout.build_columns()["image"][-1], sorted(layout.source_columns())
    ('fleetd', ['file', 'file_hash', 'line', 'text'])
    """
    return Layout(world, programs, builds, lay_out_images(world, programs, builds))


def example() -> Layout:
    """Return the images of a fleet of eight machines and twelve programs, for examples.

    Examples
    --------
    >>> len(set(example().build_columns()["build_id"])) == example().addresses.image_of_build.size
    True
    """
    from models.fleet.jobs import build_jobs  # the only use
    from models.fleet.machines import build_machines
    from models.fleet.world import Fleet, Population
    from models.profiling.programs import build_programs

    world = ProfileWorld(3, 2 * 86400.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    programs = build_programs(world, build_jobs(world, build_machines(world)), list(world.fleet.platforms))
    return lay_out(world, programs, build_builds(world, programs))
