"""A small fleet with programs inside, and a slow, readable twin of what its functions do."""

import hashlib
import math
from dataclasses import replace
from functools import cache

from models.fleet.world import Feature, Fleet, Population, Recording, Rollout, Window
from models.platforms import PLATFORMS
from models.profiling.world import Kernel, ProfileWorld, Profiling
from sim.fleet.arms import Arm, recorded
from sim.fleet.day import prepare
from sim.profiling.builds import residence_release
from sim.profiling.rows import rows_of, software_of

DAYS, DAY_S = 4, 86400.0
WORLD = ProfileWorld(
    seed=5,
    horizon_s=DAYS * DAY_S,
    epoch_s=7200.0,
    fleet=Fleet(12, {"haswell_2698v3": 0.5, "broadwell_2698v4": 0.5}, 4, 1),
    population=Population(60, 40, heavyweights=4),
    feature=Feature(
        "upgrade", {"haswell_2698v3": "skylake_6148"}, rollout=Rollout(0.5, "machine", DAY_S, waves=2, interval_s=DAY_S)
    ),
    recording=Recording(windows=tuple(Window(f"day-{day}", day * DAY_S, (day + 1) * DAY_S) for day in range(DAYS))),
    profiling=Profiling(kernel=Kernel(start_s=DAY_S, waves=2)),
)


def asked(**changes):
    """The world with other fields of `profiling`."""
    return replace(WORLD, profiling=replace(WORLD.profiling, **changes))


@cache
def _prepared():
    return prepare(WORLD)


def fleet(world=WORLD):
    """Day, arm, software and rows of a world that differs in `profiling` alone, so that its day is the same."""
    return _of_world() if world is WORLD else _of(world)


@cache
def _of_world():
    return _of(WORLD)


def _of(world):
    day = replace(_prepared(), world=world)
    software = software_of(world, day)
    arm = Arm(recorded(day).machine_from, residence_release(world, day, software.builds))
    return day, arm, software, rows_of(day, arm, software)


# The twin: plain numbers, one row and one function at a time.

WORD = 2**64


def scramble(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def mix(first, second):
    return scramble((scramble((first + 0x9E3779B97F4A7C15) % WORD) + 0x9E3779B97F4A7C15 * second) % WORD)


def uniform(key):
    return ((scramble((key + 0x9E3779B97F4A7C15) % WORD) >> 11) + 0.5) / 2**53


def normal(key):
    turn = uniform(key ^ 0xBF58476D1CE4E5B9)
    return math.sqrt(-2 * math.log(uniform(key))) * math.cos(2 * math.pi * turn)


def key_of(seed, name, *numbers):
    made = int.from_bytes(hashlib.sha256(f"{name} {seed}".encode()).digest()[:8], "little")
    for number in numbers:
        made = mix(made, int(number))
    return made


def slow_state(programs, program, shard, day):
    states, who = int(programs.states[program]), key_of(programs.seed, "states of shards", program, shard)
    state = int(uniform(who) * states)
    for date in range(1, day + 1):
        today = mix(who, date)
        if states > 1 and uniform(today) < programs.how.state_change_per_day:
            state = (state + 1 + int(uniform(WORD - 1 - today) * (states - 1))) % states
    return state


def matches(software, incident, row, name):
    builds, places, programs = software.builds, software.places, software.programs
    build = builds.of_image[programs.image_of_program[row["program"]]][row["build"]]
    has = {
        "application": programs.names[row["program"]],
        "revision": builds.revision[build],
        "compiler": builds.compiler[build],
        "platform": places.platforms[row["platform"]],
        "datacentre": places.datacentres[row["datacentre"]],
    }
    tags = all(getattr(incident, tag) in {"", value} for tag, value in has.items())
    return tags and name == incident.function and row["day"] * DAY_S >= incident.from_s


def slow_weights(software, row):
    """Shares of a row's instructions by function, from `row`: a dict with a number for each field of `CounterRows`."""
    programs, builds, how = software.programs, software.builds, software.programs.how
    program, made = row["program"], []
    for entry in range(programs.start[program], programs.start[program + 1]):
        function = int(programs.function[entry])
        drawn = int(programs.code.key[function])
        weight = programs.weight[row["state"], entry]
        shard = key_of(programs.seed, "data of shards", program, row["shard"])
        weight *= math.exp(how.shard_log_sd * normal(mix(shard, drawn)))
        day = key_of(programs.seed, "requests of days", program, row["day"])
        weight *= math.exp(how.day_log_sd * normal(mix(day, drawn)))
        weight *= builds.factor[entry] if row["build"] else 1.0
        weight *= builds.kernel_factor[function] if row["kernel"] else 1.0
        for incident in software.world.profiling.incidents:
            if matches(software, incident, row, programs.code.name[function]):
                weight *= incident.factor
        made.append(weight)
    return [weight / sum(made) for weight in made]


def slow_cost(programs, function, platform):
    """Core CPI, hits of the second and of the last level, each per instruction, on a platform with three levels."""
    code, sheet = programs.code, PLATFORMS[platform]
    l1, l2, llc = sheet.caches
    second = code.l2_hits[function] * math.sqrt(32 * 1024 / l1.size_bytes)
    last = code.llc_hits[function] * math.sqrt(256 * 1024 / l2.size_bytes)
    waits = 0.3 * l2.latency_cycles * second + 0.6 * llc.latency_cycles * last
    branches = code.mispredictions[function] * sheet.branch_miss_cycles
    return code.core_base[function] * sheet.core_cpi_factor + waits + branches, second, last


def slow_events(software, row, totals):
    """Events of each function in a row, in the order of `sim.profiling.functions.EVENTS`."""
    programs, code = software.programs, software.programs.code
    cycles, instructions, misses, _, core = totals
    functions = [int(f) for f in programs.functions(row["program"])]
    weights, platform = slow_weights(software, row), software.places.platforms[row["platform"]]
    costs = [slow_cost(programs, f, platform) for f in functions]
    computing = [w * cost[0] for w, cost in zip(weights, costs, strict=True)]
    missing = [w * code.miss_intensity[f] for w, f in zip(weights, functions, strict=True)]
    waiting = [m / code.overlap[f] for m, f in zip(missing, functions, strict=True)]
    made = []
    for i, function in enumerate(functions):
        mine, llc = instructions * weights[i], misses * missing[i] / sum(missing)
        l2 = mine * costs[i][2] + llc
        l1 = mine * costs[i][1] + l2
        own = core * computing[i] / sum(computing) + (cycles - core) * waiting[i] / sum(waiting)
        made.append([own, mine, l1, l2, llc, mine * code.mispredictions[function]])
    return made
