"""What a machine did to the requests that it served and to its neighbours, and how far the tail is off without that."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from models.queues.machine import ServingMachine
from scenarios.occupancy.truth import on_s
from scenarios.runs.rundir import Run
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import number, share
from scenarios.views.section import Block, table

_MEANS = "slowdown", "capped_share", "frequency_hz", "power_w"
TAIL = {"median": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
"""Quantiles of the response time."""


@dataclass(frozen=True, slots=True)
class TailQuantile:
    """A quantile of the response time, in seconds, as requests were served and at averaged speeds."""

    name: str
    two_way_s: float
    one_way_s: float

    @property
    def off(self) -> float:
        """By how much the one-way answer is off, relative."""
        return self.one_way_s / self.two_way_s - 1.0


@dataclass(frozen=True, slots=True)
class PushedBack:
    """Means over the time of a run on a machine, and the tail of its response times both ways."""

    platform: str
    governor: str
    neighbours: int
    speed: float
    """Of requests, relative to one alone, over the time in which servers are busy."""
    speed_low: float
    speed_high: float
    """Least and greatest mean over a counting interval."""
    slowdown: float
    """Time of the neighbours' instructions over that without the requests."""
    capped_share: float
    """Of the time."""
    frequency_hz: float
    power_w: float
    tail: tuple[TailQuantile, ...]
    unanswered: int
    """Requests that were never served as they were served; others may be at averaged speeds."""

    def payload(self) -> Payload:
        """Return what JSON says of it."""
        tail = {
            quantile.name: {"two_way_s": quantile.two_way_s, "one_way_s": quantile.one_way_s, "off": quantile.off}
            for quantile in self.tail
        }
        return {**asdict(self), "tail": tail}

    def off(self, name: str) -> float:
        """Return by how much the one-way answer is off at a quantile."""
        return next(quantile.off for quantile in self.tail if quantile.name == name)

    def blocks(self) -> Iterator[Block]:
        """Yield what people read."""
        beside = f"beside {self.neighbours} neighbours" if self.neighbours else "without neighbours"
        rows = [
            (
                "speed of requests (1: one alone)",
                number(self.speed, ".3f"),
                f"{self.speed_low:.3f} to {self.speed_high:.3f}",
            ),
            ("time of neighbours' instructions (1: without requests)", number(self.slowdown, ".3f"), ""),
            ("time with clocks lowered by a power limit", share(self.capped_share, 1), ""),
            ("clock", f"{self.frequency_hz / 1e9:.2f} GHz", ""),
            ("power", f"{self.power_w:.0f} W", ""),
        ]
        yield table((f"on {self.platform} {beside}, {self.governor}", "mean", "by interval"), rows, "the machine")
        times = [
            (quantile.name, f"{quantile.two_way_s:.4g} s", f"{quantile.one_way_s:.4g} s", f"{quantile.off:+.1%}")
            for quantile in self.tail
        ]
        head = ("response time", "as served", "speeds averaged, no push-back", "off by")
        of = "response times" if not self.unanswered else "response times of those that were served each way"
        yield table(head, times, f"{of}, and without the requests' own effect")


def pushed_back(run: Run, machine: ServingMachine) -> PushedBack | None:
    """Return what the machine of a run did; None without its ``truth_`` tables.

    Parameters
    ----------
    run : of a queue on a machine
    machine : what was asked
    """
    if not (run.has("truth_machine") and run.has("truth_one_way") and run.has("truth_requests")):
        return None
    course = run.table("truth_machine")
    length_s = course["end_s"] - course["start_s"]
    on = on_s(run, course["start_s"].to_numpy(), course["end_s"].to_numpy()) if run.has("servers") else length_s
    course = course.assign(busy_s=run.table("truth_cpu", ["utilisation"])["utilisation"] * on)
    course = course.dropna(subset=["power_w"])
    speed = course["speed"].dropna()
    both = run.table("truth_requests", ["request", "arrival_s", "departure_s"])
    length_s = course["end_s"].clip(upper=float(both["departure_s"].max())) - course["start_s"]
    busy_s = course["busy_s"][speed.index]
    ways = _responses(both[both["request"] >= 0]), _responses(run.table("truth_one_way", ["arrival_s", "departure_s"]))
    return PushedBack(
        platform=machine.platform,
        governor=machine.governor.policy.rpartition("/")[2],
        neighbours=int(run.manifest["counts"]["neighbours"]),
        speed=float(np.average(speed, weights=busy_s)),
        speed_low=float(speed.min()),
        speed_high=float(speed.max()),
        **{name: float(np.average(course[name], weights=length_s)) for name in _MEANS},
        tail=tuple(TailQuantile(name, *(_quantile(way, q) for way in ways)) for name, q in TAIL.items()),
        unanswered=run.manifest["counts"].get("unanswered", 0),
    )


def _quantile(response_s: pd.Series, q: float) -> float:
    """Return the least response time that so large a share did not exceed, as percentiles of a log are."""
    return float(np.quantile(response_s, q, method="inverted_cdf"))


def _responses(stamps: pd.DataFrame) -> pd.Series:
    return stamps["departure_s"] - stamps["arrival_s"]
