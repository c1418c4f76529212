"""Regressions planted in simulated fleets: which are worth finding, and what a collector then sees.

A fleet is like that of the library's `profiled_fleet`, though smaller and for ten days; its roll-outs of a compiler, a
kernel, hardware and releases go across the midnight between its halves. A regression is worth finding where its
function truly spends at least `WORTH` of the fleet's cycles, where and when the cause acts, before it acts: in a fleet
of ten thousand machines, twice as dear a function then costs ten machines. The builds of its image must have symbols,
since nobody can name it without. A revision's function may be the program's own or a library's; a compiler's is of a
library, since in one program alone a compiler cannot be told from a revision; neither is the kernel's, which programs
do not bring with them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.profiling.symbolise import Repository, Symboliser
from models.arrays import DAY_S
from models.errors import InputError
from models.profiling.world import Incident, ProfileWorld
from scenarios.files.loader import load, settings
from scenarios.files.schema import ProfileScenario
from scenarios.profiling.collectors import frame, no_stacks
from sim.fleet.arms import NEVER, Block, Visits, run_arm
from sim.profiling.builds import NEW
from sim.profiling.collection import Collection, visits_of
from sim.profiling.setting import ProfileSetting, of_block
from sim.profiling.truth import ProfileTruth
from sim.recorder import Values, write_table

CAUSES = ("revision", "compiler", "platform", "datacentre")
FACTORS = (1.6, 3.0)
WORTH = 0.001
"""Least share of the fleet's cycles in the second half."""
SIZE = (
    "horizon_s=864000.0",
    "fleet.machines=200",
    "population.jobs=80",
    "population.common_jobs=40",
    "population.heavyweights=12",
    "feature.rollout.start_s=345600.0",
    "feature.rollout.waves=3",
    "profiling.compiler.start_s=86400.0",
    "profiling.compiler.until_s=691200.0",
    "profiling.kernel.start_s=345600.0",
    "profiling.kernel.waves=3",
    "profiling.collector.one_in=20",
    "profiling.collector.events=[cycles]",
    "profiling.collector.seconds_per_event=100.0",
    "profiling.collector.stacks_per_s=0.0",
)
"""What is other than in the library's scenario. Roll-outs go across the midnight between the halves."""
_TAGS = ("application", "revision", "compiler", "kernel", "platform", "datacentre", "machine")


def over_fleets(planted: int, healthy: int, per_fleet: int) -> dict[int, list[int]]:
    """Return how many planted and how many healthy ones each fleet has, by its number.

    Parameters
    ----------
    planted, healthy : profiles, or pairs of them, in all
    per_fleet : most of each kind in one fleet

    Raises
    ------
    InputError
        If there is nothing to plant or to leave alone.

    Examples
    --------
    >>> over_fleets(5, 2, per_fleet=4)
    {0: [4, 2], 1: [1, 0]}
    """
    if min(planted, healthy) < 1:
        raise InputError(f"at least one planted and one healthy profile are needed, got {planted} and {healthy}")
    fleets = range(-(-max(planted, healthy) // per_fleet))
    return {seed: [min(max(total - seed * per_fleet, 0), per_fleet) for total in (planted, healthy)] for seed in fleets}


def world_of(seed: int) -> ProfileWorld:
    """Return the fleet of a number."""
    scenario = load("profiled_fleet", settings([f"seed={seed + 1}", *SIZE]))
    if not isinstance(scenario, ProfileScenario):
        raise TypeError(f"{scenario.name}: is a {scenario.kind}")
    return scenario.world


def chosen(candidates: pd.DataFrame, rng: np.random.Generator, half_s: float) -> tuple[Incident, float]:
    """Return an incident of a cause, and the share of the fleet's cycles that its function has there.

    Parameters
    ----------
    there : those worth finding: cause, value, application, function, share; at least one
    rng : draws
    half_s : midnight from which on a platform or data centre is struck
    """
    if not len(candidates):
        raise InputError("no function has enough of the fleet's cycles where this cause acts")
    row = candidates.iloc[int(rng.integers(len(candidates)))]
    factor = math.exp(rng.uniform(math.log(FACTORS[0]), math.log(FACTORS[1])))
    from_s = half_s if row["cause"] in {"platform", "datacentre"} else 0.0
    tags = {name: str(row["value"]) if row["cause"] == name else "" for name in CAUSES}
    struck = Incident(str(row["function"]), factor, from_s, str(row["application"]), **tags)
    return struck, float(row["share"])


def worth_finding(setting: ProfileSetting, spent: pd.DataFrame) -> pd.DataFrame:
    """Return what may be planted: cause, value, application, function, share of the fleet's cycles there.

    Parameters
    ----------
    setting : the fleet
    spent : where its cycles are truly spent in the second half and in good health: `PlantedFleet.spent`
    """
    software, compiler = setting.software, setting.world.profiling.compiler
    programs, builds = software.programs, software.builds
    stored = [of[0] >= 0 and bool(builds.stored[of].all()) for of in builds.of_image]
    image = pd.DataFrame({"image": programs.images, "kind": programs.kinds, "stored": stored})
    build = pd.DataFrame({"build": range(builds.count), "revision": builds.revision, "compiler": builds.compiler})
    rows = spent.merge(image, on="image").merge(build, on="build").query("stored")
    released = rows["revision"] == rows["application"].map(_released(setting))
    anywhere = rows.assign(application="")
    parts = {
        "revision": rows[released & rows["kind"].isin(["program", "library"])],
        "compiler": anywhere[(rows["compiler"] == (compiler.new if compiler else "")) & (rows["kind"] == "library")],
        "platform": anywhere,
        "datacentre": anywhere,
    }
    worthwhile: list[pd.DataFrame] = []
    for cause, part in parts.items():
        sums = part.groupby([cause, "application", "function"], as_index=False, observed=True)["cycles"].sum()
        share = sums["cycles"] / spent["cycles"].sum()
        told = sums.assign(cause=cause, share=share).drop(columns="cycles").rename(columns={cause: "value"})
        worthwhile.append(told[share >= WORTH])
    return pd.concat(worthwhile, ignore_index=True)


def _released(setting: ProfileSetting) -> dict[str, str]:
    """Return the new revision of each program that is released in the second half of the horizon."""
    builds, programs, half = setting.software.builds, setting.software.programs, len(setting.day.world.windows) // 2
    new = builds.of_image[programs.image_of_program, NEW]
    days = enumerate(builds.release_day.tolist())
    return {programs.names[i]: builds.revision[new[i]] for i, day in days if half <= day < NEVER}


@dataclass(slots=True)
class PlantedFleet:
    """A simulated fleet and its collectors: incidents only change where instructions go, and need no simulation."""

    setting: ProfileSetting
    visits: Visits
    """Of all collectors."""
    blocks: tuple[Block, ...]
    repository: Repository
    half_s: float = field(default=0.0)
    """The midnight between before and after."""

    @classmethod
    def of(cls, world: ProfileWorld, collectors: int) -> "PlantedFleet":
        """Return a fleet, simulated for so many collectors, who count cycles and ask for no stacks."""
        profiling = world.profiling
        collector = replace(profiling.collector, events=("cycles",), stacks_per_s=0.0, watches=())
        setting = ProfileSetting.of(replace(world, profiling=replace(profiling, collector=collector)))
        visits = visits_of([Collection.of(setting.with_collector(seed)) for seed in range(collectors)])
        blocks = tuple(run_arm(setting.day, setting.arm, 1, visits=visits))
        symbols, builds = (dict(columns()) for columns in (setting.layout.symbol_columns, setting.layout.build_columns))
        half_s = len(setting.day.world.windows) // 2 * DAY_S
        return cls(setting, visits, blocks, Repository.of(pa.table(symbols), pa.table(builds)), half_s)

    def spent(self) -> pd.DataFrame:
        """Return the cycles of each function in the second half, visited or not: the columns of `truth_functions`."""
        truth = ProfileTruth(self.setting.software)
        for block in self.blocks:
            rows, totals = of_block(self.setting, block)
            later = rows.day * DAY_S >= self.half_s
            truth.add(rows.take(later), totals[later])
        return frame(truth.functions())

    def pair(self, seed: int, incidents: Iterable[Incident] = ()) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return what a collector saw in the first half and in the second, where something is planted."""
        table = self.sampled(seed, incidents)
        return table[~table["later"]], table[table["later"]]

    def sampled(self, seed: int, incidents: Iterable[Incident] = ()) -> pd.DataFrame:
        """Return cycles as a collector saw them: tags, machine, function, image, later, samples, value."""
        look = self._look(seed, incidents)
        builds = frame(look.setting.layout.build_columns())[["build", "revision", "compiler"]]
        visits = frame(look.visits).merge(_stands_for(look.setting.rates), on="platform")
        processes = look.processes.merge(builds, on="build", how="left").merge(visits, on="visit")
        processes = processes.assign(later=processes["start_s"] >= self.half_s)
        return _clustered(look.samples, processes, frame(look.locations))

    def write(self, folder: Path, seed: int, incidents: Iterable[Incident] = ()) -> None:
        """Write what a collector saw into a folder, as the tables of a profile.

        Parameters
        ----------
        folder : an existing folder
        seed : of the collector
        incidents : what is planted
        """
        look = self._look(seed, incidents)
        nothing = np.zeros(0, np.int64)
        tables: dict[str, Mapping[str, Values]] = {
            "visits": look.visits,
            "processes": _columns(look.processes),
            "builds": dict(look.setting.layout.build_columns()),
            "rates": _columns(look.setting.rates),
            "locations": look.locations,
            "samples": _columns(look.samples),
            "stacks": {"stack": nothing, "depth": nothing, "location": nothing},
        }
        for name, columns in tables.items():
            write_table(folder, name, columns)

    def _look(self, seed: int, incidents: Iterable[Incident]) -> "_Look":
        """Return what a collector saw where something is planted, symbolised."""
        world = self.setting.with_collector(seed).world
        profiling = replace(world.profiling, incidents=tuple(incidents))
        setting = replace(self.setting, world=replace(world, profiling=profiling))
        collection, symboliser = Collection.of(setting), Symboliser(self.repository, no_stacks())
        parts = [collection.sampler.take(collection.view(block, self.visits), setting.rows) for block in self.blocks]
        raw = [pa.RecordBatch.from_pydict(dict(part.raw_samples)) for part in parts]
        samples = pd.concat([frame(part) for part in symboliser.samples(raw, 1)], ignore_index=True)
        processes = pd.concat([frame(part.processes) for part in parts], ignore_index=True)
        visits = dict(collection.sampler.visit_columns())
        return _Look(setting, visits, processes, samples, dict(symboliser.locations()))


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """Tables of one collector."""

    setting: ProfileSetting
    visits: Mapping[str, Values]
    processes: pd.DataFrame
    samples: pd.DataFrame
    locations: Mapping[str, Values]


def _columns(table: pd.DataFrame) -> dict[str, Values]:
    """Return a table's columns as they are written."""
    return {str(name): table[name].to_numpy() for name in table.columns}


def _stands_for(rates: pd.DataFrame) -> pd.DataFrame:
    rates = rates[(rates["collection"] == "fleet") & (rates["event"] == "cycles")]
    return rates.assign(events=rates["period"] * rates["duty"])[["platform", "events"]]


def _clustered(samples: pd.DataFrame, processes: pd.DataFrame, locations: pd.DataFrame) -> pd.DataFrame:
    """Return the sums of samples and value by function, image and tags of a machine in a half."""
    by = ["later", *_TAGS]
    group = processes.groupby(by, sort=True)
    which = pd.Series(group.ngroup().to_numpy(), processes["process"].to_numpy())
    weight = pd.Series((processes["events"] * processes["weight"]).to_numpy(np.float64), which.index)
    names = locations.groupby(["function", "image"], sort=True)
    name = pd.Series(names.ngroup().to_numpy(), locations["location"].to_numpy())
    count, process = samples["count"].to_numpy(np.int64), samples["process"].to_numpy(np.int64)
    entry = name.reindex(samples["location"]).to_numpy(np.int64)
    key = which.reindex(process).to_numpy(np.int64) * names.ngroups + entry
    sums = pd.DataFrame({"key": key, "samples": count, "value": count * weight.reindex(process).to_numpy(np.float64)})
    sums = sums.groupby("key", as_index=False).sum()
    tags = group[by].first().reset_index(drop=True)
    told = names[["function", "image"]].first().reset_index(drop=True)
    of_tags, of_names = np.divmod(sums["key"].to_numpy(np.int64), names.ngroups)
    left, middle = tags.iloc[of_tags].reset_index(drop=True), told.iloc[of_names].reset_index(drop=True)
    return left.join(middle).join(sums[["samples", "value"]])
