"""Published facts that no parameter of the machines was fitted to, beside what the machines say.

    python benchmarks/held_out.py [--seeds 10] [--each]

A line for each fact, which may be a curve of several figures: how many are within the bound, and the worst of them.
`--each` prints every figure. `sheet` counts those of a rival that knows no fitted parameter: a line of power from idle
to 85% of the TDP above it, cores that are alike to all programs, one memory of theoretical bandwidth without waiting.
Bounds are stated here and were committed before the figures were computed for the first time; the rival was added
after. A published range counts as met from its lower end less the bound to its upper end plus the bound.

power: watts at the wall at ten loads within 10%, the bound that the fitted curves meet. The watts of the idle machine
    are given to its sheet, as they were for the fit, so idle is not judged. Server, clocks and TDP are the makers'.
turbo: the same, turbo on. At full load the clock is the all-core turbo or what the TDP allows.
gain: throughput with turbo over that without within 5%, as throughput follows the clock; watts within 10%.
spread: each job of `today` alone on two platforms. Standard deviation of the log ratio of performance per clock between
    programs within 1.5 standard errors of so many programs, at least 0.03, the bound of `world/calibration`; the log of
    the largest ratio over the least within 27%, as many standard errors.
mean: geometric mean over programs of performance per clock over Haswell's within 15%.
sockets: latencies and bandwidths within 15%. Bandwidth is of three reads to a write, nearest to the traffic of our
    machines; where only reads alone and one read to a write were published, it is their mean.
latency: memory latency over idle at shares of the theoretical bandwidth within 20%. `shape` knows at which share the
    measured machine saturates, and `platform` takes what its sheet's platform attains. The last point of a shape is at
    saturation. What a platform attains is within 15% of what the machine attained with writes.

Sources: SPECpower_ssj2008 results of 2012 to 2022 (spec.org/power_ssj2008), medians over results of a processor, most
with turbo off; SPEC CPU 2017, one copy, equal binaries on x86 (Chen 2024-2026), ten integer and thirteen floating-point
programs; DaCapo Chopin 23.11, 22 programs (Blackburn et al. 2025); Intel's latency checker (KU Leuven 2016-2023; FD.io
CSIT 2018-2022); Mess (Esmaili-Dokht et al. 2024).
"""

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.fleet.memory import latency_factor
from models.fleet.processors import processor
from models.platforms import PLATFORMS, Sheet
from models.randomness import stream
from scenarios.files.loader import Override, load
from scenarios.papers.calibration import SEEDS, SMALLER, TODAY
from scenarios.papers.lone_jobs import lone_cpi
from tests.helpers.specpower import curve_w, row_of, running, sustained_hz

POWER, THROUGHPUT, SPEED, SOCKETS, LATENCY = 0.10, 0.05, 0.15, 0.15, 0.20
"""Bounds, relative."""
STANDARD_ERRORS, LEAST_SPREAD, RANGE = 1.5, 0.03, 0.27
"""Bounds of spreads: standard errors, the least in log, and relative of the log of a range over 22 programs."""
LOADS = tuple(f"{load}%" for load in range(10, 101, 10))


@dataclass(frozen=True, slots=True)
class Fact:
    """Published figures, ours beside them, and how far they may be apart."""

    group: str
    name: str
    at: Sequence[str]
    """What tells its figures apart."""
    published: Sequence[float | tuple[float, float]]
    """Numbers or ranges."""
    ours: Sequence[float]
    bound: float
    """Relative to the number, or to the nearer end of the range."""
    rival: Sequence[float]
    """What spec sheets alone would say."""
    fitted: bool = False
    """Its machine was among those that the parameters were fitted to, so it is shown and not counted."""

    @property
    def off(self) -> list[float]:
        """By which part ours are above what was published, or below; 0 within a range."""
        return self._apart(self.ours)

    @property
    def within(self) -> int:
        """Figures within the bound."""
        return sum(abs(off) <= self.bound for off in self.off)

    @property
    def rival_within(self) -> int:
        """Figures of the rival within the bound."""
        return sum(abs(off) <= self.bound for off in self._apart(self.rival))

    def _apart(self, figures: Sequence[float]) -> list[float]:
        ends = [figure if isinstance(figure, tuple) else (figure, figure) for figure in self.published]
        return [
            figure / high - 1.0 if figure > high else min(0.0, figure / low - 1.0)
            for figure, (low, high) in zip(figures, ends, strict=True)
        ]


def server(name: str, chips: int, idle_w: float, **chip: float) -> Sheet:
    """A lean machine with so many processors: those of a shipped platform, or with other cores, TDP and clocks each."""
    sheet = PLATFORMS[name].sheet
    each = {"cores": sheet.cores // sheet.sockets, "tdp_w": sheet.tdp_w / sheet.sockets}
    each |= {field: chip[field] for field in each if field in chip}
    clocks = {field: value for field, value in chip.items() if field not in each}
    bandwidth = sheet.memory_bandwidth_bytes_per_s / sheet.sockets * chips
    return replace(
        sheet,
        extends=name,
        sockets=chips,
        cores=int(each["cores"]) * chips,
        tdp_w=each["tdp_w"] * chips,
        idle_power_w=idle_w,
        memory_bandwidth_bytes_per_s=bandwidth,
        **clocks,
    )


BROADWELL_2699 = {"cores": 22, "tdp_w": 145.0, "base_frequency_hz": 2.2e9, "max_frequency_hz": 2.8e9}
SKYLAKE_8176 = {"cores": 28, "tdp_w": 165.0, "base_frequency_hz": 2.1e9, "max_frequency_hz": 2.8e9}
SKYLAKE_8180 = {"cores": 28, "tdp_w": 205.0, "base_frequency_hz": 2.5e9, "max_frequency_hz": 3.2e9}
OFF = {
    "2 × E5-2699 v4": (
        server("broadwell_2698v4", 2, 45, **BROADWELL_2699),
        (86, 102, 117, 133, 144, 158, 174, 200, 227, 254),
    ),
    "2 × Platinum 8176": (
        server("skylake_6148", 2, 57, **SKYLAKE_8176),
        (115, 138, 160, 178, 201, 228, 254, 277, 314, 357),
    ),
    "1 × Platinum 8180": (
        server("skylake_6148", 1, 39, **SKYLAKE_8180),
        (68, 81, 94, 108, 124, 141, 160, 184, 214, 235),
    ),
    "4 × Platinum 8180": (
        server("skylake_6148", 4, 90, **SKYLAKE_8180),
        (237, 290, 335, 383, 437, 510, 592, 706, 839, 942),
    ),
    "1 × Platinum 8280": (server("cascadelake_8280", 1, 39), (65, 77, 90, 101, 112, 125, 144, 164, 187, 217)),
    "2 × Platinum 8280": (server("cascadelake_8280", 2, 50), (119, 142, 165, 187, 195, 223, 252, 285, 336, 414)),
    "4 × Platinum 8280": (server("cascadelake_8280", 4, 102), (238, 282, 328, 369, 418, 486, 558, 646, 768, 917)),
    "2 × EPYC 7601": (server("naples_7601", 2, 87), (138, 152, 166, 180, 194, 204, 225, 250, 271, 296)),
    "2 × EPYC 7742": (server("rome_7742", 2, 93), (183, 208, 230, 251, 271, 291, 311, 332, 355, 400)),
    "1 × EPYC 7763": (server("milan_7763", 1, 54), (100, 114, 126, 138, 152, 172, 188, 204, 226, 254)),
    "2 × EPYC 7763": (server("milan_7763", 2, 102), (172, 194, 216, 238, 258, 282, 305, 332, 382, 455)),
}
"""Machines, and watts from 10% load to full in steps of a tenth: medians over 10, 7, 2, 9, 3, 17, 8, 6, 11, 6 and 9
results. Most are with turbo off; of the 8176 three of seven, of one 8280 one of three."""
ON = {
    "2 × Platinum 8176": (
        server("skylake_6148", 2, 49.5, **SKYLAKE_8176),
        {10: (113, 120), 50: (198, 201), 80: (305, 313), 90: (374, 381), 100: (454, 461)},
    ),
    "2 × Platinum 8180": (
        server("skylake_6148", 2, 39, **SKYLAKE_8180),
        {10: 115, 50: 207, 80: (318, 334), 90: (361, 383), 100: (401, 426)},
    ),
    "2 × Platinum 8280": (
        server("cascadelake_8280", 2, 64),
        {10: 123, 50: 213, 80: 328, 90: 385, 100: 435},
    ),
    "2 × E5-2670": (
        server("sandybridge_2670", 2, 55),
        {10: (79, 82), 50: (124, 128), 80: (191, 200), 90: (227, 238), 100: (279, 282)},
    ),
}
"""Machines with turbo on, and watts at some loads: Huawei 2288H V5 and Inspur NF5280M5, Quanta D52BQ, HPE ML350, Huawei
RH2288 V2."""
GAINS = {
    "2 × Platinum 8176": ((5.82 / 4.97, 5.94 / 4.96), (454 / 355, 461 / 352)),
    "2 × Platinum 8180": ((5.60 / 5.73, 5.65 / 5.73), (401 / 449, 426 / 449)),
    "2 × Platinum 8280": (5.74 / 5.85, 435 / 414),
}
"""Throughput and watts at full load with turbo on over those with turbo off: of the 8176 Huawei and Inspur over Lenovo
SR630 and SR650; of the others over the median of all makers' results, most of them with turbo off."""


def power() -> list[Fact]:
    """Watts of machines with turbo off."""
    return [
        Fact("power", name, LOADS, watts, curve_w(sheet)[1:], POWER, line_w(sheet, range(10, 101, 10)))
        for name, (sheet, watts) in OFF.items()
    ]


def line_w(sheet: Sheet, loads: Iterable[int]) -> list[float]:
    """Watts at loads in percent, on a straight line from the idle machine's to what its sheet says of a busy one."""
    ends = sheet.idle_power_w, sheet.platform("mine").peak_power_w
    return [ends[0] + load / 100 * (ends[1] - ends[0]) for load in loads]


def turbo() -> list[Fact]:
    """Watts with turbo on, and what turbo does at full load."""
    facts = []
    for name, (sheet, watts) in ON.items():
        curve = curve_w(sheet, sustained_hz(row_of(sheet)))
        ours = [curve[load // 10] for load in watts]
        facts.append(
            Fact("turbo", name, [f"{load}%" for load in watts], list(watts.values()), ours, POWER, line_w(sheet, watts))
        )
    for name, (throughput, watts) in GAINS.items():
        row, base_hz = row_of(ON[name][0]), ON[name][0].base_frequency_hz
        most = float(row["max_hz"]) / base_hz
        on_hz = sustained_hz(row)
        ratios = on_hz / base_hz, running(row, 1.0, on_hz)[1] / running(row, 1.0, base_hz)[1]
        facts.append(Fact("gain", f"{name}, throughput on/off", ["100%"], [throughput], ratios[:1], THROUGHPUT, [most]))
        facts.append(Fact("gain", f"{name}, watts on/off", ["100%"], [watts], ratios[1:], POWER, [1.0]))
    return facts


CORES = {
    "Haswell": "haswell_2698v3",
    "Broadwell": "broadwell_2698v4",
    "Skylake": "skylake_6148",
    "Cascade Lake": "cascadelake_8280",
    "Ice Lake": "icelake_8380",
    "Sapphire Rapids": "sapphirerapids_8480",
    "Emerald Rapids": "emeraldrapids_8592",
    "Granite Rapids": "graniterapids_6980p",
    "Naples": "naples_7601",
    "Rome": "rome_7742",
    "Milan": "milan_7763",
    "Genoa": "genoa_9654",
    "Turin": "turin_9755",
    "Altra": "altra_q80_30",
}
INTEGER, FLOATING, ALL = 10, 13, 23
"""Programs of SPEC CPU 2017."""
SPREADS = {
    ("Haswell", "Emerald Rapids", INTEGER): 0.14,
    ("Haswell", "Genoa", INTEGER): 0.19,
    ("Haswell", "Altra", INTEGER): 0.20,
    ("Ice Lake", "Emerald Rapids", INTEGER): 0.13,
    ("Milan", "Genoa", INTEGER): 0.09,
    ("Emerald Rapids", "Genoa", INTEGER): 0.20,
    ("Haswell", "Broadwell", FLOATING): 0.07,
    ("Haswell", "Skylake", FLOATING): 0.13,
    ("Haswell", "Ice Lake", FLOATING): 0.12,
    ("Haswell", "Emerald Rapids", FLOATING): 0.17,
    ("Haswell", "Granite Rapids", FLOATING): 0.20,
    ("Haswell", "Naples", FLOATING): 0.16,
    ("Haswell", "Rome", FLOATING): 0.16,
    ("Haswell", "Milan", FLOATING): 0.24,
    ("Haswell", "Genoa", FLOATING): 0.19,
    ("Haswell", "Turin", FLOATING): 0.20,
    ("Haswell", "Altra", FLOATING): 0.31,
    ("Haswell", "Broadwell", ALL): 0.06,
    ("Broadwell", "Skylake", ALL): 0.15,
    ("Cascade Lake", "Ice Lake", ALL): 0.18,
    ("Ice Lake", "Emerald Rapids", ALL): 0.11,
    ("Naples", "Rome", ALL): 0.12,
    ("Rome", "Milan", ALL): 0.20,
    ("Milan", "Genoa", ALL): 0.16,
    ("Ice Lake", "Rome", ALL): 0.18,
    ("Emerald Rapids", "Genoa", ALL): 0.19,
}
"""Standard deviation over programs of the log ratio of performance per clock between two cores."""
SPEEDS = {
    "integer": {"Emerald Rapids": 1.44, "Genoa": 1.35, "Altra": 1.10},
    "floating point": {
        "Broadwell": 1.05,
        "Skylake": 1.08,
        "Ice Lake": 1.30,
        "Emerald Rapids": 1.57,
        "Granite Rapids": 1.66,
        "Naples": 0.99,
        "Rome": 1.32,
        "Milan": 1.32,
        "Genoa": 1.56,
        "Turin": 1.97,
        "Altra": 1.09,
    },
}
"""Geometric mean over programs of performance per clock, relative to Haswell."""
KINDS = {INTEGER: "integer", FLOATING: "floating point", ALL: "all"}
JAVA, JAVA_RANGE, JAVA_SPREAD, SETS = 22, 1.42 / 0.77, 0.13, 2000
"""DaCapo's programs on one core of Alder Lake over one of Zen 4: how many, the largest ratio over the least, standard
deviation of the log. Sets of as many random jobs are drawn of each world."""


def cores(seeds: Iterable[int]) -> list[Fact]:
    """How unlike programs gain by other cores, and how much in the mean; ours are means over worlds."""
    worlds = [_log_speeds(seed) for seed in seeds]

    def mean(ours: Callable[[dict[str, np.ndarray]], float]) -> list[float]:
        return [float(np.mean([ours(world) for world in worlds]))]

    facts = []
    for (one, other, programs), spread in SPREADS.items():
        ours = mean(lambda world, one=one, other=other: (world[one] - world[other]).std())
        name = f"{one} to {other}, {KINDS[programs]}"
        facts.append(Fact("spread", name, ["log sd"], [spread], ours, _spread_bound(spread, programs), [0.0]))
    for kind, speeds in SPEEDS.items():
        for core, speed in speeds.items():
            ours = mean(lambda world, core=core: math.exp((world[core] - world["Haswell"]).mean()))
            rival = 1.0 / PLATFORMS[CORES[core]].core_cpi_factor
            facts.append(Fact("mean", f"{core}, {kind}", ["mean over Haswell"], [speed], ours, SPEED, [rival]))
    pair = "Sapphire Rapids to Genoa, Java"
    spread = mean(lambda world: (world["Sapphire Rapids"] - world["Genoa"]).std())
    facts.append(Fact("spread", pair, ["log sd"], [JAVA_SPREAD], spread, _spread_bound(JAVA_SPREAD, JAVA), [0.0]))
    span = mean(lambda world: _span(world["Sapphire Rapids"] - world["Genoa"]))
    facts.append(Fact("spread", pair, ["log of largest over least"], [math.log(JAVA_RANGE)], span, RANGE, [0.0]))
    return facts


def _spread_bound(spread: float, programs: int) -> float:
    return max(LEAST_SPREAD / spread, STANDARD_ERRORS / math.sqrt(2 * (programs - 1)))


def _log_speeds(seed: int) -> dict[str, np.ndarray]:
    """Return the log of each job's performance per clock on each core, alone."""
    given = {**SMALLER, "seed": seed}
    cpi = lone_cpi(load(TODAY, [Override(key, str(value), "value") for key, value in given.items()]), [*CORES.values()])
    return {core: -np.log(cpi[name]) for core, name in CORES.items()}


def _span(ratios: np.ndarray) -> float:
    """Return the median over sets of jobs of the largest log ratio less the least."""
    sets = stream(0, "sets of programs").choice(ratios, (SETS, JAVA))
    return float(np.median(np.ptp(sets, axis=1)))


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured on a machine of two sockets: idle latency, others' memory over one's own, bandwidth of all."""

    platform: str
    local_ns: float | tuple[float, float] | None = None
    latency_ratio: float | None = None
    bandwidth_ratio: float | None = None
    gb_per_s: float | tuple[float, float] | None = None
    theory_gb_per_s: float = 0.0
    """What its channels could carry."""


MEASURED = {
    "E5-2680 v2": Measured("sandybridge_2670", None, 1.87, 0.46, (110 + 81) / 2, 119.4),
    "E5-2680 v4": Measured("broadwell_2698v4", gb_per_s=(145 + 115) / 2, theory_gb_per_s=153.6),
    "Gold 6132": Measured("skylake_6148", (77, 80), 1.66, 0.31, (222 + 181) / 2, 256.0),
    "Gold 6140": Measured("skylake_6148", (89, 90), 1.61, 0.33, 193.4, 256.0),
    "Gold 6252N": Measured("cascadelake_8280", 81, 1.60, 0.42, (243 + 204) / 2, 281.6),
    "Gold 6240": Measured("cascadelake_8280", 81, 1.74, 0.30, 208.3, 281.6),
    "8480+": Measured(
        "sapphirerapids_8480", (111, 119), gb_per_s=(0.685 * 614.4, 0.795 * 614.4), theory_gb_per_s=614.4
    ),
    "EPYC 7742": Measured("rome_7742", 120),
}
"""Machines, and the platform that a sheet of them extends. Ranges are over machines, and of the 8480+ over two sets of
modules."""


def sockets() -> list[Fact]:
    """Latency and bandwidth of memories."""
    facts = []
    for name, it in MEASURED.items():
        sheet = PLATFORMS[it.platform]
        its = processor(it.platform, {})
        nodes = its.memory_nodes(2)
        local_ns, gb_per_s = 1e9 * sheet.memory_latency_s, its.attainable * it.theory_gb_per_s
        rows = {
            "local ns": (it.local_ns, local_ns, local_ns),
            "remote/local latency": (it.latency_ratio, nodes.latency_ratio, 1.0),
            "remote/local bandwidth": (it.bandwidth_ratio, nodes.bandwidth_ratio, 1.0),
            "GB/s": (it.gb_per_s, gb_per_s, it.theory_gb_per_s),
        }
        for what, (published, ours, rival) in rows.items():
            if published is not None:
                facts.append(Fact("sockets", name, [what], [published], [ours], SOCKETS, [rival]))
    return facts


@dataclass(frozen=True, slots=True)
class Loaded:
    """Latency over idle at tenths of the theoretical bandwidth from 0.1 on, and at saturation."""

    platform: str
    saturated: float
    """Share of the theoretical bandwidth."""
    latency: Sequence[float]
    at_saturation: float
    writes: bool = True
    fitted: bool = False


LOADED = {
    "EPYC 7742, reads": Loaded("rome_7742", 0.67, (1.05, 1.10, 1.15, 1.18, 1.22, 1.25), 1.4, False, fitted=True),
    "EPYC 7742, 1:1": Loaded("rome_7742", 0.67, (1.05, 1.09, 1.13, 1.16, 1.21, 1.37), 1.7, fitted=True),
    "Gold 6146, reads": Loaded("skylake_6148", 0.85, (1.07, 1.11, 1.17, 1.24, 1.31, 1.38, 1.47, 1.59), 1.7, False),
    "Gold 6146, 3:1": Loaded("skylake_6148", 0.71, (1.09, 1.14, 1.20, 1.25, 1.34, 1.49, 1.83), 2.3),
    "E5-2670, reads": Loaded("sandybridge_2670", 0.88, (1.06, 1.09, 1.11, 1.15, 1.19, 1.21, 1.29, 1.47), 2.0, False),
    "E5-2670, 2:1": Loaded("sandybridge_2670", 0.77, (1.05, 1.10, 1.14, 1.18, 1.23, 1.25, 1.44), 2.0),
}
"""Machines and reads to a write. The curve of latency went through points of the EPYC 7742 among others."""


def latency() -> list[Fact]:
    """Memory latency under load."""
    facts = []
    for name, it in LOADED.items():
        share = processor(it.platform, {}).attainable
        theory = [(k + 1) / 10 for k in range(len(it.latency))]
        at = [f"{part:.1f} of theory" for part in theory]
        shape = [latency_factor(part / it.saturated) for part in [*theory, it.saturated]]
        platform = [latency_factor(part / share) for part in theory]
        measured = [*it.latency, it.at_saturation]
        facts += [
            Fact(
                "latency",
                f"{name}, shape",
                [*at, "saturation"],
                measured,
                shape,
                LATENCY,
                [1.0] * len(shape),
                it.fitted,
            ),
            Fact("latency", f"{name}, platform", at, it.latency, platform, LATENCY, [1.0] * len(at), it.fitted),
        ]
        if it.writes:
            facts.append(Fact("latency", name, ["attained"], [it.saturated], [share], SOCKETS, [1.0], it.fitted))
    return facts


NOT_JUDGED = {
    "power of E5-2660, E5-2660 v2 and E5-2670": "their results mix turbo on and off, or do not say",
    "power of Platinum 8160, EPYC 7702 and EPYC 7713": "no sheet at hand says their all-core turbo",
    "turbo of Platinum 8380": "no result has it on",
    "latencies of E5-2680 v4": "measured with four nodes (cluster on die), which no platform of ours has",
    "local latency of E5-2680 v2": "latency stands in the sheet, and there is none of it",
    "bandwidth of EPYC 7742": "its attainable share is the published one",
    "other sockets of EPYCs and of the 8480+": "no published log at hand",
    "cores of Ivy Bridge and Graviton 3 with floating point": "no platform of ours has them",
}
"""Facts that are held out and stay open, and why."""


def facts(seeds: Iterable[int]) -> list[Fact]:
    """Return all facts."""
    return [*power(), *turbo(), *cores(seeds), *sockets(), *latency()]


def shown(figure: float | tuple[float, float]) -> str:
    """Return a number or a range with three digits."""
    ends = figure if isinstance(figure, tuple) else (figure,)
    return "–".join(f"{end:.0f}" if end >= 100 else f"{end:.3g}" for end in ends)


def lines(fact: Fact, each: bool) -> list[str]:
    """Return the line of a fact with its worst figure, or a line for each figure."""
    off = fact.off
    worst = max(range(len(off)), key=lambda k: abs(off[k]))
    counted = "in the fit" if fact.fitted else f"{fact.within} of {len(off)}"
    rival = "" if fact.fitted else fact.rival_within
    return [
        f"{fact.group:8} {fact.name:41} {counted:>10} {rival:>5}  ±{fact.bound:3.0%}  {fact.at[k]:26} "
        f"{shown(fact.published[k]):>10} {shown(fact.ours[k]):>7} {off[k]:+7.1%}"
        for k in (range(len(off)) if each else [worst])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=len(SEEDS), metavar="N", help="first N worlds for the cores")
    parser.add_argument("--each", action="store_true", help="print every figure, not only the worst of a curve")
    asked = parser.parse_args()
    found = facts(SEEDS[: asked.seeds])
    print(
        f"{'group':8} {'fact':41} {'within':>10} sheet bound  {'worst at':26} {'published':>10} {'ours':>7} {'off':>7}"
    )
    for fact in found:
        print("\n".join(lines(fact, asked.each)))
    print()
    counted = [fact for fact in found if not fact.fitted]
    for group in [*dict.fromkeys(fact.group for fact in counted), "all"]:
        its = [fact for fact in counted if group in {fact.group, "all"}]
        within, rival = sum(fact.within for fact in its), sum(fact.rival_within for fact in its)
        print(f"{group:8} {within:3} of {sum(len(fact.ours) for fact in its):3} within the bound; sheet {rival}")
    print("\nnot judged:")
    for what, why in NOT_JUDGED.items():
        print(f"  {what}: {why}")


if __name__ == "__main__":
    main()
