"""What fields of a cross-platform scenario must satisfy together."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from models.code.parts import PartError, is_part, name_problems
from models.platforms import sheets_of
from models.services.world import Hardware
from scenarios.files.faults import shown
from scenarios.files.findings import Check, FieldFault, repeated
from scenarios.files.own_platforms import shallow
from scenarios.files.schema import ServiceScenario
from scenarios.files.tree import Keys
from scenarios.views.numbers import closest

MOST_REQUESTS = 20_000_000
"""Requests that all platforms together may serve; memory is proportional to those of one."""
MOST_INTERVALS = 100_000
"""Intervals that a log may have."""
SPARE_INTERVALS = 2
"""Intervals that calibration needs beyond one for each type of request."""
_TRACE = ("analyses", "crossplatform")


def platforms(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """Platforms are known, and each is there once."""
    yield from _named(("platforms",), scenario.platforms, scenario.sheets, "unknown platform")


def cache_levels(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """Own platforms that serve have two levels of caches at least."""
    yield from shallow(scenario.own_platforms, "own_platforms", scenario.platforms)


def measured(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """A log is of a platform that serves, and each is there once."""
    yield from _named(("measured",), scenario.measured, scenario.platforms, "should be one of platforms")


def clocks(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """Clocks are of platforms that serve, which can run at them."""
    sheets = sheets_of(scenario.own_platforms)
    for name, clock_hz in scenario.clocks.items():
        if name not in scenario.platforms:
            yield _unknown(("clocks", name), name, scenario.platforms, "should be one of platforms")
        elif name in sheets and clock_hz > sheets[name].max_frequency_hz:
            problem = f"should be at most {sheets[name].max_frequency_hz:g}, its highest clock with all cores busy"
            yield FieldFault(("clocks", name), problem, f"{clock_hz:g}")


def calibration(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """Predictions start from a platform that has a log."""
    if scenario.calibration not in scenario.measured:
        yield _unknown((*_TRACE, "from"), scenario.calibration, scenario.measured, "should be one of measured")


def targets(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """What is predicted for served too, so that there is a truth, and is not where predictions start from."""
    wanted = scenario.analyses.crossplatform.targets
    yield from _named((*_TRACE, "targets"), wanted, scenario.platforms, "should be one of platforms")
    for i, name in enumerate(wanted):
        if name == scenario.calibration:
            yield FieldFault((*_TRACE, "targets", i), "is the platform that predictions start from", shown(name))
    if not scenario.targets:
        yield FieldFault(
            ("platforms",), f"should hold another platform than {scenario.calibration}, to be predicted for"
        )


def methods(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """Every way to predict is tried once, and those of somebody's own are there."""
    from analysis.crossplatform.own_methods import own_method

    names = scenario.analyses.crossplatform.methods
    for i, name in repeated(names):
        yield FieldFault((*_TRACE, "methods", i), "is there twice", shown(name))
    own = list[tuple[int, str]]()
    for i, name in enumerate(names):
        if not is_part(name) or name in names[:i]:
            continue
        try:
            own.append((i, own_method(name).name))
        except PartError as error:
            yield FieldFault((*_TRACE, "methods", i), str(error))
    for number, problem in name_problems([(names[i], name) for i, name in own], ()):
        yield FieldFault((*_TRACE, "methods", own[number][0]), problem)


def intervals(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """The trace is whole intervals, and half of it suffices to tell the types of requests apart."""
    count = scenario.horizon_s / scenario.interval_s
    if not math.isclose(count, round(count), rel_tol=1e-9) or count < 1:
        problem = f"should be a multiple of interval_s = {scenario.interval_s:g}"
        yield FieldFault(("horizon_s",), problem, f"{scenario.horizon_s:g}")
        return
    needed = scenario.application.types + SPARE_INTERVALS
    if count // 2 < needed:
        problem = (
            f"should be at least {2 * needed * scenario.interval_s:g}: half of the trace needs {needed} intervals to "
            f"tell {scenario.application.types} types apart"
        )
        yield FieldFault(("horizon_s",), problem, f"{scenario.horizon_s:g}")
    if count > MOST_INTERVALS:
        problem = f"should be at least {scenario.horizon_s / MOST_INTERVALS:.6g}, {MOST_INTERVALS} intervals"
        yield FieldFault(("interval_s",), problem, f"{scenario.interval_s:g}")


def size(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """No more requests are asked for than can be served in reasonable time."""
    requests = scenario.load.requests_per_s * scenario.load.volume * scenario.horizon_s * len(scenario.platforms)
    if requests > MOST_REQUESTS:
        problem = f"should make at most {MOST_REQUESTS} requests on all platforms within horizon_s"
        yield FieldFault(("load", "requests_per_s"), problem, f"up to {requests:.3g}")


def mechanisms(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """Settings are of mechanisms that are there."""
    for part, software in (("application", scenario.application), ("benchmark", scenario.benchmark)):
        if software.other_tiers == "platform" and software.other_tiers_s == 0.0:
            yield FieldFault((part, "other_tiers"), "does nothing where other_tiers_s is 0", '"platform"')
    if not scenario.mechanisms.smt and scenario.hardware.sibling_relief != Hardware().sibling_relief:
        problem = "does nothing where mechanisms.smt is false: siblings do not slow each other down"
        yield FieldFault(("hardware", "sibling_relief"), problem, f"{scenario.hardware.sibling_relief:g}")


def bounds(scenario: ServiceScenario) -> Iterator[FieldFault]:
    """Bounds on response time are there once each, and platforms are chosen under one of them."""
    for i, bound_s in repeated(scenario.bounds_s):
        yield FieldFault(("bounds_s", i), "is there twice", f"{bound_s:g}")
    bound_s = scenario.analyses.crossplatform.bound_s
    if bound_s not in scenario.bounds_s:
        known = ", ".join(f"{bound:g}" for bound in scenario.bounds_s) or "none"
        yield FieldFault((*_TRACE, "bound_s"), f"should be one of bounds_s, {known}", f"{bound_s:g}")


CHECKS: Mapping[Check[ServiceScenario], tuple[str, ...]] = {
    platforms: ("platforms", "own_platforms.*"),
    cache_levels: ("platforms", "own_platforms"),
    measured: ("platforms", "measured"),
    clocks: ("platforms", "own_platforms", "clocks"),
    calibration: ("measured", "analyses"),
    targets: ("platforms", "measured", "analyses"),
    methods: ("analyses",),
    intervals: ("horizon_s", "interval_s", "application.types"),
    size: ("load", "horizon_s", "platforms"),
    mechanisms: ("application", "benchmark", "mechanisms", "hardware"),
    bounds: ("bounds_s", "analyses"),
}
"""Every check with the fields that it needs."""


def _named(keys: Keys, names: Sequence[str], known: Collection[str], problem: str) -> Iterator[FieldFault]:
    """Yield what is wrong with a list of names."""
    for i, name in enumerate(names):
        if name not in known:
            yield _unknown((*keys, i), name, known, problem)
    for i, name in repeated(names):
        yield FieldFault((*keys, i), "is there twice", shown(name))


def _unknown(keys: Keys, name: str, known: Collection[str], problem: str) -> FieldFault:
    return FieldFault(keys, f"{problem} ({closest(name, known)})", shown(name))
