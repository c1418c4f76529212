"""Other collectors of the same fleet: what each would have seen, without a run of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.profiling.symbolise import Repository, Symboliser
from models.profiling.world import Event, ProfileWorld
from sim.fleet.arms import Block, run_arm
from sim.profiling.collection import Collection, visits_of
from sim.profiling.setting import ProfileSetting
from sim.recorder import Values

EVENTS: tuple[Event, ...] = ("cycles", "instructions")
"""What the collectors count: the intervals that are judged rest on these."""
MOST_TOGETHER, MOST_VISITS = 10, 100_000
"""Collectors that are simulated together, and visits that all of them make: what memory is proportional to."""


@dataclass(frozen=True, slots=True)
class CollectorTables:
    """What one collector saw of the fleet's jobs, as clustered tables: keys, visit, samples, value."""

    functions: pd.DataFrame
    """Cycles by image and function."""
    cycles: pd.DataFrame
    """Cycles by application."""
    instructions: pd.DataFrame
    """Instructions by application."""
    of_visits: pd.DataFrame
    """Cycles of each visit, what machines do of their own included."""
    visits: pd.DataFrame
    """Table `visits`."""


@dataclass(slots=True)
class Looks:
    """Collectors of one fleet, by seed; some are simulated together, when the first of them is asked for."""

    setting: ProfileSetting
    repository: Repository
    together: int
    """Collectors that are simulated together."""
    first: int = -1
    """Seed of the first of those that are at hand."""
    collections: tuple[Collection, ...] = ()
    blocks: tuple[Block, ...] = ()

    @classmethod
    def of(cls, world: ProfileWorld) -> "Looks":
        """Return the collectors of a world; all its builds are in the symbol repository."""
        profiling = world.profiling
        collector = replace(profiling.collector, events=EVENTS, stacks_per_s=0.0, watches=())
        releases = replace(profiling.releases, unstored_share=0.0)
        setting = ProfileSetting.of(
            replace(world, profiling=replace(profiling, collector=collector, releases=releases))
        )
        repository = Repository.of(
            pa.table(dict(setting.layout.symbol_columns())), pa.table(dict(setting.layout.build_columns()))
        )
        rounds = world.horizon_s / collector.round_s
        visits = rounds * max(1.0, world.fleet.machines / collector.one_in)
        return cls(setting, repository, max(1, min(MOST_TOGETHER, int(MOST_VISITS / visits))))

    def look(self, seed: int) -> CollectorTables:
        """Return what the collector of a seed saw."""
        first = seed - seed % self.together
        if first != self.first:
            self._simulate(first)
        collection = self.collections[seed - first]
        every = visits_of(self.collections)
        parts = [collection.sampler.take(collection.view(block, every), self.setting.rows) for block in self.blocks]
        processes = pd.concat([frame(part.processes) for part in parts], ignore_index=True)
        symboliser = Symboliser(self.repository, no_stacks())
        batches = [pa.RecordBatch.from_pydict(dict(part.raw_samples)) for part in parts]
        samples = pd.concat([frame(part) for part in symboliser.samples(batches)], ignore_index=True)
        visits = frame(collection.sampler.visit_columns())
        return _look(samples, frame(symboliser.locations()), processes, visits, self.setting.rates)

    def _simulate(self, first: int) -> None:
        """Simulate the fleet for the collectors of the seeds from `first` on."""
        settings = [self.setting.with_collector(seed) for seed in range(first, first + self.together)]
        self.collections = tuple(map(Collection.of, settings))
        visits = visits_of(self.collections)
        self.blocks = tuple(run_arm(self.setting.day, self.setting.arm, visits=visits))
        self.first = first


def _look(
    samples: pd.DataFrame, locations: pd.DataFrame, processes: pd.DataFrame, visits: pd.DataFrame, rates: pd.DataFrame
) -> CollectorTables:
    """Put a collector's tables together.

    Samples are added as integers. All samples that a visit takes of one event stand for the same number of events, so
    that a value is one product: exact, but for one rounding where it is beyond 2⁵³.
    """
    stands_for = rates[rates["collection"] == "fleet"].assign(events=rates["period"] * rates["duty"])
    rows = samples.merge(processes[["process", "visit", "application"]], on="process")
    rows = rows.merge(visits[["visit", "platform", "weight"]], on="visit")
    rows = rows.merge(stands_for[["platform", "event", "events"]], on=["platform", "event"])
    rows = rows.merge(locations[["location", "image", "function"]], on="location").rename(columns={"count": "samples"})
    rows["each"] = rows["events"].astype(np.float64) * rows["weight"]
    of_jobs = ~rows["application"].str.startswith("[")
    cycles, instructions = rows["event"] == EVENTS[0], rows["event"] == EVENTS[1]
    return CollectorTables(
        functions=_clustered(rows[of_jobs & cycles], ["image", "function"]),
        cycles=_clustered(rows[of_jobs & cycles], ["application"]),
        instructions=_clustered(rows[of_jobs & instructions], ["application"]),
        of_visits=_clustered(rows[cycles], []),
        visits=visits,
    )


def _clustered(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    sums = rows.groupby([*by, "visit"], sort=True, as_index=False).agg(
        samples=("samples", "sum"), each=("each", "first")
    )
    return sums.assign(value=sums["samples"] * sums["each"]).drop(columns="each")


def frame(columns: Mapping[str, Values]) -> pd.DataFrame:
    """Return columns as a table whose texts are plain."""
    return pd.DataFrame(
        {
            name: column.cast(pa.string()).to_pandas() if isinstance(column, pa.Array) else column
            for name, column in columns.items()
        }
    )


def no_stacks() -> pa.Table:
    """Return the table `raw_stacks` of a collector that asks for none.

    Examples
    --------
    >>> no_stacks().num_rows
    0
    """
    return pa.table({name: np.zeros(0, np.int64) for name in ("stack", "depth", "build", "address")})
