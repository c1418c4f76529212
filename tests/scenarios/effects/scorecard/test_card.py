"""The sums over pieces: shares with errors clustered by fleet, machines needed, ratios over corners."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from models.randomness import stream
from scenarios.effects.scorecard.card import _summed, frame
from scenarios.effects.scorecard.card import summary as card_of
from scenarios.effects.scorecard.needed import machines_needed

SIZES = (12, 25, 50, 100, 200, 400)


def summary(pieces):
    return card_of(pieces).records()


def row(**values):
    plain = {"design": "day", "estimator": "cuped", "machines": 25, "draws": 100, "answered": 100, "covered": 95}
    return plain | {"detected": 90, "bias": 0.001, "sd": 0.01, "error": 0.01, "margin": 0.02} | values


def piece(corner, seed, *rows):
    return {"corner": corner, "seed": seed, "rows": list(rows)}


def test_shares_and_means_are_those_of_all_draws():
    made = summary([piece("base", 1, row(covered=90)), piece("base", 2, row(covered=98, bias=-0.003, margin=0.04))])
    (corner,) = made["corners"]
    assert (corner["fleets"], corner["draws"], corner["coverage"], corner["power"]) == (2, 200, 0.94, 0.9)
    assert (corner["bias"], corner["margin"]) == pytest.approx((-0.001, 0.03))
    assert corner["bias_to_margin"] == pytest.approx(1 / 30)
    within, between = 99 * 0.01**2 * 2, 100 * 0.002**2 * 2
    assert corner["sd"] == pytest.approx(math.sqrt((within + between) / 199))
    assert made["overall"][0]["coverage"] == 0.94


def test_means_are_of_draws_with_an_answer_and_shares_of_all():
    silent = row(answered=0, covered=0, detected=0, bias=None, sd=None, error=None, margin=None)
    half = row(answered=50, covered=50, detected=0, bias=0.002)
    (corner,) = summary([piece("base", 1, silent), piece("base", 2, half), piece("base", 3, row())])["corners"]
    assert corner["coverage"] == pytest.approx(145 / 300)
    assert corner["bias"] == pytest.approx((50 * 0.002 + 100 * 0.001) / 150)


def test_who_never_answers_is_told_and_left_out():
    nothing = row(estimator="published", answered=0, bias=None, sd=None, error=None, margin=None)
    made = summary([piece("base", 1, row(), nothing)])
    assert made["silent"] == [{"design": "day", "estimator": "published"}]
    assert {one["estimator"] for one in made["corners"]} == {"cuped"}


@pytest.mark.statistical
def test_errors_of_coverage_take_fleets_as_units():
    """Fleets of unlike coverage, 400 scorecards of 20: the spread's own error is 3.5%; 17% is 4.5 of those: 1e-5."""
    rng = stream(5, "clustered coverage")
    covered = rng.binomial(100, rng.beta(18.0, 2.0, (400, 20)))
    pieces = [piece(str(i), seed, row(covered=int(count))) for (i, seed), count in np.ndenumerate(covered)]
    made = _summed(frame(pieces), ["corner"])
    assert math.sqrt((made["coverage_error"] ** 2).mean()) == pytest.approx(made["coverage"].std(), rel=0.17)


def test_the_error_is_that_of_a_loop_over_fleets():
    counts, draws = [80, 95, 99], [100, 100, 200]
    pieces = [
        piece("base", i, row(covered=count, draws=n)) for i, (count, n) in enumerate(zip(counts, draws, strict=True))
    ]
    share = sum(counts) / 400
    squares = sum((count - share * n) ** 2 for count, n in zip(counts, draws, strict=True))
    assert summary(pieces)["corners"][0]["coverage_error"] == pytest.approx(math.sqrt(3 / 2 * squares) / 400)
    assert math.isnan(summary(pieces[:1])["corners"][0]["coverage_error"])


@pytest.mark.parametrize("sd", [0.04, 0.07])
def test_machines_needed_are_those_of_the_normal_law(sd):
    """Power of a known standard error sd/√n is Φ(0.01 √n / sd − 1.96), 95% at n = (3.605 sd / 0.01)²."""
    power = norm.cdf(0.01 * np.sqrt(SIZES) / sd - norm.ppf(0.975))
    exact = ((norm.ppf(0.975) + norm.ppf(0.95)) * sd / 0.01) ** 2
    found, bound = machines_needed(SIZES, power)
    if exact > SIZES[-1]:
        assert (found, bound) == (400.0, "more than")
    else:
        assert (found, bound) == (pytest.approx(exact, rel=0.15), "")
        near = [int(exact / 1.05), int(exact * 1.05)]
        assert machines_needed(near, norm.cdf(0.01 * np.sqrt(near) / sd - norm.ppf(0.975)))[0] == pytest.approx(
            exact, rel=0.01
        )


def test_power_that_falls_again_counts_from_where_it_stays():
    assert machines_needed([10, 20, 40, 80], np.array([0.9, 0.96, 0.9, 1.0])) == (pytest.approx(40 * math.sqrt(2)), "")


def curve(estimator, detected):
    return [
        row(estimator=estimator, machines=size, detected=hits) for size, hits in zip((10, 40), detected, strict=True)
    ]


def test_ratios_are_geometric_means_over_corners_where_both_are_known():
    """n95 is 20 at (90, 100), 10 · 4^(1/4) at (94, 98), and unknown where 95 is not reached."""
    pieces = [
        piece("base", 1, *curve("cuped", (90, 100)), *curve("shrunken", (94, 98))),
        piece("wide", 1, *curve("cuped", (90, 100)), *curve("shrunken", (90, 100))),
        piece("tails", 1, *curve("cuped", (80, 90)), *curve("shrunken", (90, 100))),
    ]
    made = summary(pieces)
    needed = {(one["corner"], one["estimator"]): (one["n95"], one["bound"]) for one in made["needed"]}
    assert needed["base", "shrunken"] == (pytest.approx(10 * 4**0.25), "")
    assert needed["tails", "cuped"] == (40.0, "more than")
    ratios = pd.DataFrame(made["ratios"]).set_index("estimator")
    first = 4**0.25 / 2
    assert ratios.loc["shrunken", "ratio"] == pytest.approx(math.sqrt(first))
    assert (ratios.loc["shrunken", "corners"], ratios.loc["shrunken", "unknown"]) == (2, 1)
    assert ratios.loc["shrunken", "low"] < first < 1 < ratios.loc["shrunken", "high"]
    assert set(ratios["against"]) == {"cuped"}
    shown = {one["estimator"]: one for one in made["estimators"]}
    assert shown["shrunken"]["cuped"] == pytest.approx(math.sqrt(first))
    assert (shown["cuped"]["corners"], shown["shrunken"]["corners"]) == (2, 3)


def test_the_table_names_the_worst_corner():
    made = summary(
        [piece("base", 1, row()), piece("wide", 1, row(covered=60, bias=0.03)), piece("wide", 2, row(covered=70))]
    )
    (one,) = made["estimators"]
    assert (one["worst_corner"], one["worst"], one["fleets"]) == ("wide", 0.65, 3)
    assert one["bias_to_margin"] == pytest.approx(0.0155 / 0.02)
    assert one["coverage"] == 0.75


def test_errors_of_machines_needed_come_from_leaving_out_fleets():
    pieces = [piece("base", seed, *curve("cuped", (hits, 100))) for seed, hits in enumerate((80, 90, 94))]
    logs = []
    for left in ((90, 94), (80, 94), (80, 90)):
        power = sum(left) / 200
        logs.append(math.log(10) + (0.95 - power) / (1 - power) * math.log(4))
    expected = math.sqrt(2 / 3 * sum((one - np.mean(logs)) ** 2 for one in logs))
    assert summary(pieces)["needed"][0]["relative_error"] == pytest.approx(expected)


def test_sizes_of_one_fleet_are_one_unit():
    """All sizes together: fleets have 170 and 150 of 200; the error is |170 − 160| · √(2 · 2) / 400."""
    pieces = [
        piece("base", seed, row(machines=10, covered=hits), row(machines=40, covered=hits))
        for seed, hits in ((1, 85), (2, 75))
    ]
    (one,) = summary(pieces)["estimators"]
    assert one["coverage_error"] == pytest.approx(20 / 400)
    assert math.isnan(summary(pieces[:1])["estimators"][0]["coverage_error"])


def test_drawn_corners_stand_beside_the_others():
    pieces = [
        piece("base", 1, *curve("cuped", (90, 100)), *curve("adjusted", (94, 98))),
        piece("drawn_1", 1, *curve("cuped", (90, 100)), *curve("adjusted", (80, 90))),
    ]
    made = summary(pieces)
    assert {row["corner"] for row in made["corners"]} == {"base", "drawn_1"}
    assert {row["corner"] for row in made["by_corner"]} == {"base", "drawn_1"}
    assert {row["estimator"]: row["worst_corner"] for row in made["estimators"]} == dict.fromkeys(
        ("cuped", "adjusted"), "base"
    )
    assert {row["worst_corner"] for row in made["drawn"]} == {"drawn_1"}
    (gain,) = made["gains"]
    assert (gain["estimator"], gain["corners"], gain["worst_corner"]) == ("adjusted", 1, "base")
    assert gain["gain"] == pytest.approx(math.sqrt(2))
    alone = summary(pieces[1:])
    assert alone["drawn"] == []
    assert {row["worst_corner"] for row in alone["estimators"]} == {"drawn_1"}


def test_errors_of_the_geometric_mean_of_machines_needed_are_those_of_its_corners():
    powers = {"base": (80, 90, 94), "wide": (85, 90, 93)}
    pieces = [
        piece(corner, seed, *curve("cuped", (hits, 100)))
        for corner, each in powers.items()
        for seed, hits in enumerate(each)
    ]
    made = summary(pieces)
    errors = [row["relative_error"] for row in made["needed"]]
    assert made["estimators"][0]["n95_error"] == pytest.approx(math.hypot(*errors) / 2)
