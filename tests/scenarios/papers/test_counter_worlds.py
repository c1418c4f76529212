"""Worlds in which a finding is absent: its criterion is measured there, and comes out false.

Findings that have such a world beside what measures them are tried there; `COUNTER_WORLDS` has the others. Values are
made by hand or by a fixed seed, far beyond the bounds, so that none hangs on a draw.
"""

import json
import re
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import judge, numbers
from analysis.figures.crossplatform import choices, traits
from analysis.figures.gwp import profiles, square_root
from analysis.figures.occupancy import accuracy, capacity
from analysis.figures.wsmeter import cost, dependence, motivation, sampling, studies
from analysis.figures.wsmeter.draws import Halves
from analysis.profiling import metrics
from analysis.profiling.affinity import advice
from analysis.profiling.affinity.table import AffinityTable
from docs.verdicts import RECORD
from scenarios.files.loader import load, settings
from scenarios.papers.catalogue import ROWS
from scenarios.papers.rows import published
from scenarios.papers.sources import Sources
from scenarios.profiling import core_seconds
from scenarios.profiling.core_seconds import TOGETHER, CollectorSeconds, CollectorStudy, judged, summary
from scenarios.runs.execution import obtain
from tests.analysis.figures.gwp.test_profiles import MIX, by_machine, days, machines
from tests.analysis.figures.wsmeter import test_customer as customers
from tests.analysis.figures.wsmeter.test_sampling import machines as machines_of
from tests.helpers.affinities import random_table, sampled
from tests.helpers.reproduce_worlds import failing, fleet
from tests.scenarios.papers import test_crossplatform as services
from tests.scenarios.papers import test_occupancy as queues

TESTS = Path(__file__).parents[2]
FLAT = MIX**0.3 / (MIX**0.3).sum()
COMES_AND_GOES = [np.roll(MIX, day % 5) for day in range(14)]


def seesaw():
    """Two jobs, of which one gains on every rack what the other loses."""
    made = fleet(machines=2400, jobs=2, popularity=0.0, instance_sd=0.02)
    sign = np.where(made.current["job"] == 0, 1.0, -1.0) * np.where(made.current["rack"] % 2 == 0, 1.0, -1.0)
    table = made.current.assign(value=made.current["value"] * (1 + 0.2 * sign))
    return Halves(table, table, made.jobs)


def noisy_light_jobs():
    """Jobs whose instances differ the more the less they weigh: clusters that cover few jobs have the least margins."""
    return fleet(jobs=200, popularity=0.9, machines=1500, instance_sd=np.linspace(0.02, 0.6, 200))


def minutes(counted, error):
    """Minutes of a server whose utilisation the law tells with an error."""
    columns = {"start_s": 60.0 * np.arange(len(counted)), "counted": counted, "law": counted + error}
    columns |= {"raw": np.full(len(counted), error), "normalised": error / counted}
    return pd.DataFrame(columns).assign(jobs=1.0, fewest=0.0, most=2.0)


def accounts(most=0.995, error=0.0):
    """Figure 6 of a server that is at most so busy, of which the law is so far off."""
    made = minutes(np.linspace(0.05, most, 60), error)
    return accuracy.measure_fig6(made, made, made, made)


def crowded():
    """Two minutes of work for four servers, and an hour of none but one short request."""
    arrival, demand = np.append(np.linspace(0.0, 100.0, 400), 3600.0), np.append(np.ones(400), 0.1)
    return queues.served("ps", arrival, demand)


def batch():
    """Requests that all come at once, and queue whatever serves them."""
    return queues.served("fcfs", np.zeros(200), np.ones(200))


def busy(load):
    """Requests that keep so many of four servers busy."""
    arrival = np.arange(0.0, 1200.0, 1.0 / load)
    return pd.DataFrame({"arrival_s": arrival, "departure_s": arrival + 1.0})


def later(servers):
    """A load whose requests take longer with so many servers."""
    made = queues.SLICED
    return made.assign(departure_s=made["departure_s"] + 60.0 * (made["servers"] == servers))


def lasting(extra_s):
    """A load that is served while its demands are said to be longer."""
    return capacity.measure_table1(queues.SLICED, queues.DEMAND.sum() + extra_s)


def steady_mix():
    """Ten hours of two types, of which one is always a tenth more frequent."""
    counts, log = services.day()
    wave = 100 * (1 + 0.6 * np.sin(2.5 * counts["start_s"] / 3600))
    return counts.assign(requests=wave * np.where(counts["type"] == "a", 1.1, 1.0)), log


def shuffled_costs():
    """Ten hours in which instructions have nothing to do with the requests."""
    counts, log = services.day()
    return counts, log.assign(instructions=log["instructions"].to_numpy()[np.random.default_rng(1).permutation(600)])


def misses_in_groups():
    """Misses of a log-normal law, which the power law is far from."""
    return services.sweep(lambda _name, size: 0.1 * np.exp(-((np.log(size / 2**14) / 3.0) ** 2)))


def few_right(counts):
    """States that no cut of the entropy tells apart, and profiles in one cluster."""
    return profiles.measure_fig5(days(np.random.default_rng(1), [MIX] * 14), counts)


def alike():
    """Machines of one mix, half of which are said to be in another state."""
    return machines(np.random.default_rng(3), [MIX, MIX])


def of_every_kind():
    """Machines of ten mixes, each a little flatter than the one before."""
    mixes = [MIX**power / (MIX**power).sum() for power in np.linspace(0.3, 1.0, 10)]
    return machines(np.random.default_rng(3), mixes, count=100)


def flat_from_the_first_sample():
    """Machines whose entropy is that of many samples however few they have."""
    frames = [
        pd.DataFrame({"machine": machine, "entry": np.arange(4), "samples": 10 * (1 + machine), "state": machine % 2})
        for machine in range(60)
    ]
    return pd.concat(frames, ignore_index=True)


def by_type(moving, still, events):
    """Daily profiles of which those of some types move from day to day, each on its own, and those of others do not."""
    rng = np.random.default_rng(5)
    other = [event for event in profiles.EVENTS if event not in events]
    made = {}
    for kinds, spread in ((events, moving), (other, still)):
        for event in kinds:
            mixes = [np.roll(MIX, 1) * share + MIX * (1 - share) for share in rng.uniform(0, spread, 60)]
            made[event] = days(rng, mixes, 200_000)
    return profiles.measure_fig6b(made)


def memory_that_follows_cycles():
    """Memory and threads that move with cycles, from which instructions and CPU time are apart."""
    rng = np.random.default_rng(5)

    def mixes():
        return [np.roll(MIX, 1) * share + MIX * (1 - share) for share in rng.uniform(0, 0.5, 60)]

    load = mixes()
    together = dict.fromkeys(("cycles", "heap_bytes", "threads"), load)
    return profiles.measure_fig6b(
        {event: days(rng, together.get(event, mixes()), 200_000) for event in profiles.EVENTS}
    )


def split_machines():
    """Machines of two kinds that share no function: a part of them misses all of one kind."""
    counts = np.zeros((16, 30), dtype=np.int64)
    counts[:2, :15], counts[2:, 15:] = 100_000, 100
    return square_root.measure(by_machine(counts), np.random.default_rng(6))


RUNS = TemporaryDirectory()
DAY = ("horizon_s=86400", "feature.rollout.start_s=0", "profiling.compiler.until_s=86400", "profiling.kernel.waves=1")


def quiet(_what, _share):
    """Say nothing."""


@cache
def profiled(row, *overrides):
    """What a row measures of a small profiled fleet of a day that is otherwise."""
    run = obtain(load("profiled_small", settings([*DAY, *overrides])), Path(RUNS.name), False, quiet)
    return ROWS[row].outcome(Sources(lambda *_: run, quiet)).measured


FEW = ("fleet.machines=16", "population.jobs=20", "population.common_jobs=12")


@cache
def visited(one_in):
    """What collectors say of core-seconds that visit one in so many of sixteen machines each hour of a day."""
    study = CollectorStudy("profiled_small", TOGETHER, (*FEW, *DAY, f"profiling.collector.one_in={one_in}"))
    trial = asdict(summary([CollectorSeconds(**draw) for draw in judged(study, 0)["draws"]]))
    return ROWS["gwp/core-seconds"].outcome(Sources(None, quiet, trials={"core_seconds": lambda **_: trial})).measured


def by_what_weights_add_up_to():
    """The same where chance decides how many visits there are and the size of the fleet is not made use of."""

    def as_printed(*tables, machine_epochs, **how):
        assert machine_epochs == 16 * 288
        return metrics.core_seconds(*tables, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_seconds, "core_seconds", as_printed)
        return visited(6)


def without_symbols():
    """A fleet in which every program is released anew, and no repository gets the binary."""
    unstored = ("profiling.releases.share=1.0", "profiling.releases.unstored_share=1.0")
    return profiled("gwp/fig1", "profiling.releases.wave_shares=[1.0]", *unstored)


def compressing(share):
    """A fleet in which the compression library has so much of the instructions, and six others 5% each."""
    others = [{"name": f"lib{letter}", "functions": 5, "instruction_share": 0.05} for letter in "abcdef"]
    libraries = [{"name": "libz", "functions": 12, "instruction_share": share, "log_sd": 0.1}, *others]
    return profiled("gwp/shared-code", f"profiling.programs.libraries={json.dumps(libraries)}")


def assigned(truth, samples=1_000_000):
    """What is gained by the best assignment of jobs to platforms, by that of samples, and by annealing."""
    table = AffinityTable.of(sampled(truth, 1, samples))
    shares = advice.aligned(advice.advise(table).shares, table, truth)
    return numbers(**asdict(advice._trial(0.0, advice.judge(shares, truth), truth)))


def spent_on_profiling(on_machine, visited):
    """A fleet of a hundred machines, of which so many are visited and spend such a share of their cycles on it."""
    count = np.arange(visited)
    visits = pd.DataFrame({"visit": count, "frequency_hz": 2e9, "overhead_cycles": on_machine * 2e11})
    processes = pd.DataFrame({"visit": count, "cpu_s": 100.0})
    tables = {"visits": visits, "processes": processes, "epochs": pd.DataFrame({"cycles": np.full(100, 2e11)})}
    run = SimpleNamespace(table=lambda name, columns: tables[name][columns])
    return ROWS["gwp/overhead"].outcome(Sources(lambda *_: run, quiet)).measured


COUNTER_WORLDS = {
    ("wsmeter/fig1", "share_gaining_low"): lambda: motivation.measure_fig1(fleet(effect=-0.05, instance_sd=0.05)),
    ("wsmeter/fig2", "instances_gaining"): lambda: motivation.measure_fig2(fleet(jobs=10)),
    ("wsmeter/fig2", "change_gaining_low"): lambda: motivation.measure_fig2(fleet(jobs=10)),
    ("wsmeter/fig7", "exponent_high"): lambda: sampling.measure_fig7(machines_of(np.random.default_rng(1).random(110))),
    ("wsmeter/fig9", "median_pearson_low"): lambda: dependence.measure_fig9(seesaw(), resamples=40),
    ("wsmeter/fig16", "ratio_to_ideal_low"): lambda: cost.measure_fig16(noisy_light_jobs(), (25, 50), draws=20),
    ("wsmeter/fig17", "cv_high"): lambda: studies.measure_fig17(fleet(job_sd=2.5, slots=2), draws=20),
    ("wsmeter/fig19", "margin_400_high"): lambda: studies.measure_fig19(
        fleet(machines=1600, instance_sd=0.9), draws=20
    ),
    ("wsmeter/fig19", "quota_coverage_400_low"): lambda: studies.measure_fig19(
        fleet(machines=1600, jobs=2000, popularity=0.0), draws=20
    ),
    ("wsmeter/table3", "margin_mean_high"): lambda: customers.table3(heavy_tail=30.0),
    ("occupancy/fig6", "utilisation_high"): lambda: accounts(most=0.8),
    ("occupancy/fig6", "normalised_error_median"): lambda: accounts(error=0.03),
    ("occupancy/fig6", "normalised_error_median_short"): lambda: accounts(error=0.03),
    ("occupancy/table1", "queueing_ratio_23"): lambda: capacity.measure_table1(batch(), 200.0),
    ("occupancy/table1", "queueing_ratio_34"): lambda: capacity.measure_table1(batch(), 200.0),
    ("occupancy/table1", "area_rise_max"): lambda: capacity.measure_table1(later(3), queues.DEMAND.sum()),
    ("occupancy/table1", "law_error"): lambda: lasting(60.0),
    ("occupancy/load", "mean_utilisation"): lambda: capacity.measure_load(busy(2.0)),
    ("occupancy/load", "overloaded_share"): lambda: capacity.measure_load(busy(2.0)),
    ("occupancy/tightness", "far_better_max"): lambda: capacity.measure_tightness(crowded()),
    ("occupancy/srpt", "queueing_share_3"): lambda: capacity.measure_srpt(queues.SLICED, crowded()),
    ("occupancy/srpt", "queueing_share_1"): lambda: capacity.measure_srpt(queues.SLICED, crowded()),
    ("crossplatform/fig2", "ratio_low"): lambda: traits.measure_fig2(*steady_mix()),
    ("crossplatform/fig2", "ratio_high"): lambda: traits.measure_fig2(*steady_mix()),
    ("crossplatform/fig2", "instructions_correlation"): lambda: traits.measure_fig2(*shuffled_costs()),
    ("crossplatform/fig3", "slope_error"): lambda: traits.measure_fig3(
        services.sweep(lambda _name, size: 0.1 * (size / 2**14) ** -0.5)
    ),
    ("crossplatform/table2", "lognormal_gain"): lambda: traits.measure_table2(misses_in_groups()),
    ("crossplatform/fig4", "instructions_p90"): lambda: traits.measure_fig4(services.predicted(0.2)),
    ("crossplatform/fig4", "l2_misses_p90"): lambda: traits.measure_fig4(services.predicted(0.2)),
    ("crossplatform/table7", "simulated_gain_over_benchmark"): lambda: choices.measure_table7(services.USELESS),
    ("crossplatform/table8", "simulated_error_median"): lambda: choices.measure_table8(
        services.typed(0.9, 0.5).assign(predicted_s=lambda table: 1.5 * table["predicted_s"])
    ),
    ("gwp/fig1", "unknown_share"): without_symbols,
    ("gwp/fig4", "count_correlation"): lambda: profiles.measure_fig4(
        pd.concat(
            days(np.random.default_rng(2), [np.full(300, 1 / 300)], samples=int(n)).assign(day=day)
            for day, n in enumerate(np.geomspace(10, 200, 14))
        )
    ),
    ("gwp/fig5", "day_spread"): lambda: profiles.measure_fig5(days(np.random.default_rng(1), [MIX, FLAT] * 7), alike()),
    ("gwp/fig5", "rise"): lambda: few_right(flat_from_the_first_sample()),
    ("gwp/fig5", "gap_over_spread"): lambda: few_right(of_every_kind()),
    ("gwp/fig5", "states_right"): lambda: few_right(alike()),
    ("gwp/fig6a", "distance_max"): lambda: profiles.measure_fig6a(
        days(np.random.default_rng(4), COMES_AND_GOES), 0.01, top=30
    ),
    ("gwp/fig6b", "memory_over_cycles"): lambda: by_type(0.5, 0.0, ("heap_bytes", "threads")),
    ("gwp/fig6b", "threads_over_cycles"): lambda: by_type(0.5, 0.0, ("heap_bytes", "threads")),
    ("gwp/fig6b", "cpu_cycles_correlation"): lambda: by_type(0.0, 0.0, ()),
    ("gwp/fig6b", "cycles_instructions_correlation"): lambda: by_type(0.0, 0.0, ()),
    ("gwp/fig6b", "correlation_gap"): memory_that_follows_cycles,
    ("gwp/sqrt-law", "subset_error"): split_machines,
    ("gwp/fig7", "error"): lambda: profiled("gwp/fig7", *FEW, "profiling.collector.samples_per_s=0.1"),
    ("gwp/core-seconds", "error"): lambda: visited(48),
    ("gwp/core-seconds", "half_width"): lambda: visited(48),
    ("gwp/core-seconds", "interval_holds"): by_what_weights_add_up_to,
    ("gwp/shared-code", "share"): lambda: compressing(0.4),
    ("gwp/shared-code", "largest_in_one"): lambda: compressing(0.4),
    ("gwp/shared-code", "rank"): lambda: compressing(0.005),
    ("gwp/affinity", "gain"): lambda: assigned(random_table(1, interaction=0.0)),
    ("gwp/affinity", "sampled_over_possible"): lambda: assigned(random_table(1), samples=2_000),
    ("gwp/affinity", "anneal_gap"): lambda: assigned(random_table(1, jobs=30, platforms=20, allowed=0.3)),
    ("gwp/overhead", "always_on_share"): lambda: spent_on_profiling(1e-6, visited=1),
}
"""Row and criterion, and what the row measures where the finding is absent."""

NOTHING = {"instances_gaining", "change_gaining_low"}
"""What fails because there is no clear gain to measure, and cannot fail otherwise."""


@pytest.mark.parametrize(("row", "name"), COUNTER_WORLDS, ids=[f"{row} {name}" for row, name in COUNTER_WORLDS])
def test_a_finding_comes_out_false_where_it_is_absent(row, name):
    criteria = [criterion for criterion in judge(COUNTER_WORLDS[row, name](), published(row)) if criterion.name == name]
    assert {criterion.kind for criterion in criteria} == {"finding"}
    assert np.isfinite(criteria[0].measured) == (name not in NOTHING), f"{name}: {criteria[0]}"
    assert not all(criterion.holds for criterion in criteria), [str(criterion) for criterion in criteria]


def test_what_profiling_costs_and_saves_is_found_where_it_is_there():
    assert failing("gwp/overhead", spent_on_profiling(0.005, visited=1)) == []
    found = assigned(random_table(1, interaction=0.5))
    assert failing("gwp/affinity", found) == []


MEASURED_AS = dict.fromkeys(("crossplatform/table5", "crossplatform/table6"), "crossplatform/table4")
"""Rows that the function of another measures."""


def test_every_finding_of_a_paper_has_a_world_without_it():
    """It is in the table above, or named by a test that names the row, or what measures it, too."""
    sources = [
        set(re.findall(r"[\w/-]+", file.read_text("utf-8")))
        for file in TESTS.rglob("test_*.py")
        if file.name not in {"test_verdicts.py", "test_record.py", Path(__file__).name}
    ]
    findings = [
        (row["id"], criterion["name"])
        for row in json.loads(RECORD.read_text("utf-8"))
        for criterion in row["criteria"]
        if criterion["kind"] == "finding" and not row["id"].startswith("world/")
    ]
    untried = [
        (row, name)
        for row, name in findings
        if (row, name) not in COUNTER_WORLDS
        and not any(
            name in words and words & {row, MEASURED_AS.get(row), f"measure_{row.partition('/')[2]}"}
            for words in sources
        )
    ]
    assert untried == []
    assert set(COUNTER_WORLDS) <= set(findings)
