"""The report of many judged worlds of a service: how every method of prediction did in all of them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios.crossplatform.measure import show_validate
from scenarios.crossplatform.worlds import BEST, summary
from scenarios.report.page import Page
from scenarios.report.printed import printed
from scenarios.report.subject import composed
from scenarios.views.section import Verdict

_MIDDLE = "-worlds-"


def of_pieces(pieces: Sequence[Mapping[str, Any]], folder: Path) -> Page:
    """Return the report of kept worlds, as `wsc validate` sums them up.

    Parameters
    ----------
    pieces : worlds as `judged_world.judge` returns them, one at least
    folder : where they are kept; its name begins with the scenario's

    Examples
    --------
    >>> row = {"target": "pres", "measured": False, "response_error": 0.1, "coverage": 0.9, "half_width": 0.1}
    >>> row |= {"response_coverage": 0.9, "response_half_width": 0.2, "method": "testbed", "service_error": 0.05}
    >>> world = {"seed": 1, "outside_hull": 0.7, "methods": [row], "platforms": [], "notes": []}
    >>> world |= {"choices": [{"method": "testbed", "wrong": 0.1, "loss": 0.01}]}
    >>> of_pieces([world], Path("runs/auction-worlds-6e44")).title
    'auction'
    """
    judged = sorted((dict(one) for one in pieces), key=lambda one: int(one["seed"]))
    made = summary(judged)
    name = folder.resolve().name.partition(_MIDDLE)[0]
    targets = {row["target"] for row in made["targets"]}
    origin = next((row["platform"] for row in made["platforms"] if row["platform"] not in targets), "another platform")
    head = {"kind": "cross_platform", "run": str(folder), "scenario": name, "seed": judged[0]["seed"], "from": origin}
    payload = head | made
    shown = printed(payload, show_validate)
    section = composed(
        "How every method did",
        shown.says,
        shown.tables,
        commands=(f"wsc validate {name} --draws {len(judged)}",),
        verdicts=(_verdict(made),),
        payload=payload,
    )
    facts = {"folder": str(folder), "seeds": f"{judged[0]['seed']} to {judged[-1]['seed']}", "predicted from": origin}
    return Page(
        "many worlds of a service", name, f"{len(judged)} worlds, each judged by itself.", facts, [section], payload
    )


def _verdict(made: Mapping[str, Any]) -> Verdict:
    rows = {row["method"]: row for row in made["methods"]}
    if BEST not in rows:
        return Verdict("Prediction", f"{len(rows)} methods judged, {BEST} not among them")
    row = rows[BEST]
    says = (
        f"{BEST}: service time off by {row['service_error']:.1%} (median); 90% intervals hold in {row['coverage']:.1%}"
    )
    won = made["best"]["beats_every_rival"]
    return Verdict(
        "Prediction", says + (f"; errs less than every rival in {won:.0%} of cases" if math.isfinite(won) else "")
    )
