"""Why findings do not hold: causes that experiments remove, and something of like size that they remove instead.

A sentence about a cause is a hypothesis. It counts once the criterion holds in worlds without the cause, and still does
not hold in worlds without something else (`judged.CauseTrial`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

from scenarios.papers.rows import Changed


@dataclass(frozen=True, slots=True)
class SuspectedCause:
    """A cause of criteria that do not hold, and how scenarios say that it is not there."""

    row: str
    criteria: tuple[str, ...]
    cause: str
    """In words that follow the criterion's name: with or without what."""
    removed: Changed
    sham: str
    instead: Changed
    measured_as: str = ""
    """The criterion's number by a method without the cause, in the worlds as they are; empty where worlds change."""

    @property
    def sham_size(self) -> float:
        """How far the sham moves what is simulated, as a share of how far removing the cause does."""
        return SHAM_SIZES.get((self.row, self.criteria[0]), 0.0)


@dataclass(frozen=True, slots=True)
class PopulationChoice:
    """Which of two populations rows use, by the sentence of the paper that decides it."""

    used: str
    other: str
    reason: str


_EVEN: Final = (
    "with 160 heavyweights for 40, so that each holds a quarter of what it held",
    (("population.heavyweights", 160),),
    "with the spread of the light jobs' quota doubled instead",
    (("population.light_log_sd", 1.8),),
)
_ALONE: Final = (
    "without what racks and machines share (conditions, neighbours in caches and memory)",
    (
        ("conditions.rack_latency_log_sd", 0.0),
        ("conditions.rack_power_log_sd", 0.0),
        ("conditions.rack_access_log_sd", 0.0),
        ("conditions.machine_access_log_sd", 0.0),
        ("interference.llc", False),
        ("interference.bandwidth", False),
    ),
    "without what instances of a job do not share (their input)",
    (("population.behaviour.input_log_sd", 0.0),),
)
_MEMORY_065, _MEMORY_09, _MEMORY_11 = (
    (
        f"where jobs differ more in how often they access memory (a log-sd of {spread:g} for 0.55)",
        (("population.behaviour.memory_accesses_log_sd", spread),),
    )
    for spread in (0.65, 0.9, 1.1)
)
_ONDEMAND: Final = (
    "where the policy before slows a machine that has little to do, so that the new one also raises clocks",
    (("power.governor.policy", "ondemand"),),
    *_MEMORY_065,
)
_HALF_STALLED: Final = (
    "where the new policy slows every core that waits in half of its cycles (0.5 for 0.65)",
    (("feature.governor.stall_threshold", 0.5),),
    *_MEMORY_065,
)
_SAME_INPUT: Final = (
    "without what instances of a job do not share (their input)",
    (("population.behaviour.input_log_sd", 0.0),),
    *_MEMORY_09,
)
_OWN_INPUT: Final = (
    "where inputs of a job's instances differ three times as much",
    (("population.behaviour.input_log_sd", 0.5),),
    *_MEMORY_11,
)
_SAME_SERVICE: Final = (
    "where all instances of the service have the same input",
    (("population.services.0.input_log_sd", 0.0),),
    "where hardware threads of a core do not slow each other",
    (("interference.smt", False),),
)
_SINGLY: Final = (
    "where misses come one by one, as in the published equation, and do not overlap",
    (("mechanisms.overlap", False),),
)
_PROCESSORS: Final = (
    "where no processor waits for lines that another has written, and no thread for its busy sibling",
    (("mechanisms.coherence", False), ("mechanisms.smt", False)),
    *_SINGLY,
)
_ONE_BY_ONE: Final = (*_SINGLY, *_PROCESSORS[:2])
_SHEETS: Final = (
    "where processors are as their sheets say",
    (("mechanisms.departure", False),),
    "where mispredicted branches cost nothing",
    (("mechanisms.branches", False),),
)
_BUS: Final = (
    "where the bus is never busy",
    (("mechanisms.bus", False),),
    "where mispredicted branches cost nothing",
    (("mechanisms.branches", False),),
)
_IDEAL: Final = (
    "where processors are as their sheets say, and wait neither for lines that others wrote nor for busy siblings",
    (("mechanisms.departure", False), ("mechanisms.coherence", False), ("mechanisms.smt", False)),
    *_SINGLY,
)
_POWER_LAW: Final = (
    "where the working sets of every type follow one power law",
    (("application.reuse_log_sd", 0.0), ("application.type_reuse_log_sd", 0.0)),
    "where all types miss as often in a cache of 32 KiB",
    (("application.misses_log_sd", 0.0),),
)
_ALIKE: Final = (
    "where requests of one type are all alike",
    (("mechanisms.request_noise", False),),
    "where no garbage is collected",
    (("mechanisms.collection", False),),
)
_TIERS: Final = (
    "without the delay at other tiers, which is the same whatever the platform",
    (("application.other_tiers_s", 0.0),),
    "with other tiers whose types do not differ",
    (("application.other_tiers_log_sd", 0.0),),
)
_OFTEN: Final = (("application.misses_per_instruction", 0.15),)
_AS_WRITTEN: Final = tuple(
    (f"mechanisms.{mechanism}", False)
    for mechanism in (
        *("departure", "coherence", "smt", "bus", "sockets", "branches", "overlap", "request_noise", "collection"),
    )
)
_OFTEN_MISSED: Final = (
    "where requests miss caches 2.6 times as often",
    _OFTEN,
    "where requests have half the instructions",
    (("application.instructions_per_request", 4.0e6),),
)
_EQUATION: Final = (
    "where processors do what the published equation says and no more, and requests miss caches 2.6 times as often",
    (*_AS_WRITTEN, *_OFTEN),
    "where requests miss caches 2.6 times as often, and processors do as here",
    _OFTEN,
)
_LINES: Final = (
    "where processors are as their sheets say, and do not wait for lines that others wrote",
    (("mechanisms.departure", False), ("mechanisms.coherence", False)),
    *_SINGLY,
)
_OFTEN_ALONE: Final = (
    "where requests miss caches 2.6 times as often, and no processor waits for lines that another has written",
    (*_OFTEN, ("mechanisms.coherence", False)),
    "where requests miss caches 2.6 times as often, and hardware threads of a core do not slow each other",
    (*_OFTEN, ("mechanisms.smt", False)),
)
_TEN_MODELS: Final = (
    *("piii", "pres", "pd4", "xeon_1h_2c_2p", "sandybridge_2670", "haswell_2698v3"),
    *("skylake_6148", "icelake_8380", "naples_7601", "rome_7742", "milan_7763"),
)
_MODELS: Final = (
    "where the ten platforms are ten server models that are as their sheets say (here eight are configurations of one)",
    (("platforms", _TEN_MODELS), ("mechanisms.departure", False)),
    "where those eight run at half their clock and are as their sheets say",
    (
        ("mechanisms.departure", False),
        *(
            (f"clocks.xeon_{threads}h_{cores}c_{processors}p", 1.4e9)
            for threads, cores, processors in product((1, 2), repeat=3)
        ),
    ),
)
_AHEAD: Final = (
    "where the Xeon runs at half its clock, so that it is not ahead in clock, caches and memory alike",
    (("clocks.xeon_1h_2c_1p", 1.4e9),),
    "where both processors run at half their clock",
    (("clocks.xeon_1h_2c_1p", 1.4e9), ("clocks.pres", 1.1e9)),
)
_HALF_BUSY: Final = (
    "where requests have half the instructions, so that ten a second of no type fill a processor",
    (("application.instructions_per_request", 4.0e6),),
    "where requests of one type differ half as much",
    (("application.request_cv", 0.2),),
)
_STUDENT: Final = (
    "with the quantile of Student's t for so many machines, where the method takes two standard errors",
    (),
    *_ALONE[:2],
)

_VISITS: Final = (
    "where the collector visits one machine in five in each round, for one in twenty",
    (("profiling.collector.one_in", 5),),
    "where it takes four times the samples of each machine",
    (("profiling.collector.samples_per_s", 20.0),),
)
_DAYS: Final = (
    "where the load of jobs that serve requests differs from day to day (a log-sd of 0.3 for 0)",
    (("population.behaviour.day_load_log_sd", 0.3),),
    "where it swings as much within each day (a half-amplitude of 0.42 for 0.11)",
    (("population.behaviour.diurnal_amplitude", 0.42),),
)
_SUITED: Final = (
    "where jobs differ three times as much in which cores suit them",
    (("population.behaviour.core_trait_sd", 3.0),),
    "where jobs differ twice as much in how often they access memory (a log-sd of 1.1 for 0.55)",
    (("population.behaviour.memory_accesses_log_sd", 1.1),),
)
_STEEPER: Final = (
    "where a program's functions follow a steeper law (rank to the power −1.8 for −1.1) and its instances differ less "
    "in it (a log-sd of 0.1 for 0.35)",
    (("profiling.programs.zipf", 1.8), ("profiling.programs.shard_log_sd", 0.1)),
    "where further states are flatter still (weights to the power 0.25 for 0.45)",
    (("profiling.programs.state_flattening", 0.25),),
)

_TROUGHS: Final = (
    "where the rate in the troughs is halved (a twentieth of the peak's for a tenth)",
    tuple((f"load.arrivals.load.{knot}.factor", 0.05) for knot in (2, 4, 6, 8)),
    "where the rate in bursts is halved instead, so that there are none",
    (("load.arrivals.bursts.factor", 1.0),),
)

CAUSES: Final = (
    SuspectedCause("wsmeter/fig1", ("share_clear_gains_low", "share_clear_losses_low"), *_ONDEMAND),
    SuspectedCause(
        "wsmeter/fig2",
        ("instances_losing", "change_losing_high", "shift_losing_high", "instances_gaining", "change_gaining_low"),
        *_ONDEMAND,
    ),
    SuspectedCause("wsmeter/fig3", ("change_low",), *_HALF_STALLED),
    SuspectedCause("wsmeter/fig19", ("excludes_current_low_400",), *_ONDEMAND),
    SuspectedCause("wsmeter/fig9", ("share_small_distance_low",), *_EVEN),
    SuspectedCause("wsmeter/efficiency", ("efficiency_low_min",), *_SAME_INPUT),
    SuspectedCause("wsmeter/fig12", ("cost_growth_min4",), *_EVEN),
    SuspectedCause("wsmeter/fig12", ("margin_min20_max",), *_SAME_INPUT),
    SuspectedCause("wsmeter/fig17", ("excludes_current_high_25",), *_OWN_INPUT),
    SuspectedCause("wsmeter/fig17", ("includes_new_high_min",), *_STUDENT, "includes_new_student_high_min"),
    SuspectedCause("wsmeter/table1", ("margin_over_target", "machines_growth"), *_SAME_INPUT),
    SuspectedCause("wsmeter/table2-local", ("separation",), *_SAME_SERVICE),
    SuspectedCause("wsmeter/fig18", ("includes_new_widened_high",), *_ALONE),
    SuspectedCause("occupancy/fig6", ("utilisation_low",), *_TROUGHS),
    SuspectedCause("crossplatform/fig3", ("largest_residual_max",), *_POWER_LAW),
    SuspectedCause("crossplatform/table2", ("lognormal_gain",), *_POWER_LAW),
    SuspectedCause("crossplatform/fig4", ("l2_misses_p90",), *_ALIKE),
    SuspectedCause("crossplatform/table4", ("beats_benchmark", "simulated_best"), *_IDEAL),
    SuspectedCause("crossplatform/table4", ("third_share",), *_OFTEN_MISSED),
    SuspectedCause("crossplatform/table5", ("simulated_best",), *_IDEAL),
    SuspectedCause("crossplatform/table5", ("third_share",), *_OFTEN_ALONE),
    SuspectedCause("crossplatform/table6", ("simulated_best",), *_LINES),
    SuspectedCause("crossplatform/table6", ("third_share", "simulated_median"), *_EQUATION),
    SuspectedCause("crossplatform/fig5", ("piii_over_pres",), *_TIERS),
    SuspectedCause("crossplatform/fig5", ("below_cycles",), *_ONE_BY_ONE),
    SuspectedCause("crossplatform/fig5", ("below_benchmark",), *_OFTEN_MISSED),
    SuspectedCause("crossplatform/fig6", ("platform_ratio",), *_SHEETS),
    SuspectedCause("crossplatform/fig6", ("workload_gap",), *_BUS),
    SuspectedCause(
        "crossplatform/table7",
        ("simulated_gain_over_benchmark", "simulated_loss"),
        *_PROCESSORS,
    ),
    SuspectedCause("crossplatform/table7", ("simulated_rank_error", "simulated_gain_over_cycles"), *_EQUATION),
    SuspectedCause(
        "crossplatform/fig7",
        ("simulated_wrong_best", "simulated_benchmark_over_ours"),
        *_PROCESSORS,
    ),
    SuspectedCause("crossplatform/fig7", ("simulated_cycles_over_ours",), *_MODELS),
    SuspectedCause("crossplatform/table8", ("simulated_disagreement",), *_AHEAD),
    SuspectedCause("crossplatform/table8", ("simulated_error_median",), *_HALF_BUSY),
    SuspectedCause("gwp/fig7", ("spread",), *_VISITS),
    SuspectedCause("gwp/fig5", ("gap_over_spread", "states_right"), *_STEEPER),
    SuspectedCause("gwp/affinity", ("gain",), *_SUITED),
    SuspectedCause("gwp/fig6b", ("memory_over_cycles", "cycles_instructions_correlation", "correlation_gap"), *_DAYS),
)
"""Every cause that was thought of. Those of WSMeter and of cross-platform prediction were found by changing one thing
after another in worlds 1 to 10; docs/papers.md says which explain as much in worlds 11 to 20, tried afterwards."""

SHAM_SIZES: Final[Mapping[tuple[str, str], float]] = {
    ("wsmeter/fig1", "share_clear_gains_low"): 0.95,
    ("wsmeter/fig2", "instances_losing"): 0.95,
    ("wsmeter/fig3", "change_low"): 3.1,
    ("wsmeter/fig9", "share_small_distance_low"): 1.0,
    ("wsmeter/fig12", "cost_growth_min4"): 1.0,
    ("wsmeter/fig12", "margin_min20_max"): 1.0,
    ("wsmeter/fig17", "excludes_current_high_25"): 0.74,
    ("wsmeter/fig18", "includes_new_widened_high"): 3.1,
    ("wsmeter/fig19", "excludes_current_low_400"): 0.95,
    ("wsmeter/table1", "margin_over_target"): 1.0,
    ("wsmeter/table2-local", "separation"): 1.9,
    ("wsmeter/efficiency", "efficiency_low_min"): 1.0,
    ("occupancy/fig6", "utilisation_low"): 0.82,
    ("crossplatform/fig3", "largest_residual_max"): 1.4,
    ("crossplatform/table2", "lognormal_gain"): 1.4,
    ("crossplatform/fig4", "l2_misses_p90"): 2.5,
    ("crossplatform/table4", "beats_benchmark"): 0.96,
    ("crossplatform/table4", "third_share"): 1.1,
    ("crossplatform/table5", "simulated_best"): 0.87,
    ("crossplatform/table5", "third_share"): 1.3,
    ("crossplatform/table6", "simulated_best"): 0.87,
    ("crossplatform/table6", "third_share"): 1.4,
    ("crossplatform/fig5", "piii_over_pres"): 0.05,
    ("crossplatform/fig5", "below_cycles"): 1.0,
    ("crossplatform/fig5", "below_benchmark"): 1.1,
    ("crossplatform/fig6", "platform_ratio"): 1.4,
    ("crossplatform/fig6", "workload_gap"): 1.7,
    ("crossplatform/table7", "simulated_gain_over_benchmark"): 1.0,
    ("crossplatform/table7", "simulated_rank_error"): 1.5,
    ("crossplatform/fig7", "simulated_wrong_best"): 1.0,
    ("crossplatform/fig7", "simulated_cycles_over_ours"): 15.0,
    ("crossplatform/table8", "simulated_disagreement"): 1.3,
    ("crossplatform/table8", "simulated_error_median"): 0.05,
    ("gwp/fig5", "gap_over_spread"): 0.06,
    ("gwp/fig6b", "memory_over_cycles"): 1.4,
    ("gwp/fig7", "spread"): 1.0,
    ("gwp/affinity", "gain"): 12.0,
}
"""Of a cause's first criterion: root mean squares of log ratios, in a small world of seed 1, of what
`tests/helpers/change_sizes.py` measures. Those of `gwp` were measured once, of `profiled_small`, which that
command does not repeat; the collector of `gwp/fig7` takes four times the samples either way."""

_COVERAGES: Final = "using 25∼50 machines [...] while covering 82%∼87% of the total CPU quota (6.3)"
_POLICY: Final = "to measure the performance impact of a new feature (i.e., new DVFS policy) (2.1), the subject of 6.4"
_HEAVY: Final = "there exist heavyweight jobs which occupy a large portion of the total quota (3.2)"
_CLUSTERS: Final = "our randomly generated testing clusters often have enough instances for high coverage (5.2.2)"
_SENTENCES: Final = {
    _COVERAGES: ("fig16", "fig17", "fig18", "table1", "efficiency"),
    _POLICY: ("fig1", "fig2", "fig3", "fig7"),
    _HEAVY: ("fig4", "fig5"),
    _CLUSTERS: ("fig8", "fig9", "fig11", "fig12", "fig13"),
    "400-machine cluster robustly identifies the improvement while also achieving high coverage (91%) (6.4)": (
        "fig19",
    ),
    "We test for the top 1 to 500 heavyweight jobs in WSC 1 (Figure 4) (3.3)": ("fig6",),
}
"""What WSMeter says of the fleets of its rows; docs/scenarios.md has the table."""
_OF_GOOGLE: Final = "several thousand applications running on thousands of servers, of the same operator"


def population_of(row: str) -> PopulationChoice | None:
    """Return which population a row uses; None of a row in which concentration of the quota plays no part."""
    paper, _, name = row.partition("/")
    if paper == "gwp":
        return PopulationChoice("google2011", "wsmeter", _OF_GOOGLE)
    sentences = [sentence for sentence, names in _SENTENCES.items() if paper == "wsmeter" and name in names]
    return PopulationChoice("wsmeter", "google2011", sentences[0]) if sentences else None


def causes_of(row: str) -> list[SuspectedCause]:
    """Return the causes that were thought of for a row."""
    return [cause for cause in CAUSES if cause.row == row]
