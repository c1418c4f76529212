"""The report of many judged worlds of a service: how every method of prediction did in all of them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from scenarios.crossplatform.measure import ValidatedWorlds
from scenarios.crossplatform.trial import JudgedWorld
from scenarios.crossplatform.worlds import BEST, WorldsSummary, summary
from scenarios.report.page import Page
from scenarios.report.subject import composed, sentences
from scenarios.views.section import Table, Verdict

_MIDDLE = "-worlds-"


def of_pieces(pieces: Sequence[Mapping[str, object]], folder: Path) -> Page:
    """Return the report of kept worlds, as `wsc validate` sums them up.

    Parameters
    ----------
    pieces : worlds as `crossplatform.trial.judge` returns them, one at least
    folder : where they are kept; its name begins with the scenario's
    """
    judged = sorted((cast(JudgedWorld, dict(piece)) for piece in pieces), key=lambda world: world["seed"])
    summed = summary(judged)
    name = folder.resolve().name.partition(_MIDDLE)[0]
    targets = {row["target"] for row in summed["targets"]}
    origin = next(
        (row["platform"] for row in summed["platforms"] if row["platform"] not in targets), "another platform"
    )
    validated = ValidatedWorlds("cross_platform", folder, name, judged[0]["seed"], origin, summed)
    shown, payload = validated.section(), validated.payload()
    section = composed(
        "How every method did",
        sentences(shown),
        shown.of(Table),
        commands=(f"wsc validate {name} --draws {len(judged)}",),
        verdicts=(_verdict(summed),),
        answer=validated,
    )
    facts = {"folder": str(folder), "seeds": f"{judged[0]['seed']} to {judged[-1]['seed']}", "predicted from": origin}
    return Page(
        "many worlds of a service", name, f"{len(judged)} worlds, each judged by itself.", facts, [section], payload
    )


def _verdict(summed: WorldsSummary) -> Verdict:
    rows = {row["method"]: row for row in summed["methods"]}
    if BEST not in rows:
        return Verdict("Prediction", f"{len(rows)} methods judged, {BEST} not among them")
    row = rows[BEST]
    says = (
        f"{BEST}: service time off by {row['service_error']:.1%} (median); 90% intervals hold in {row['coverage']:.1%}"
    )
    won = summed["best"]["beats_every_rival"]
    return Verdict(
        "Prediction", says + (f"; errs less than every rival in {won:.0%} of cases" if math.isfinite(won) else "")
    )
