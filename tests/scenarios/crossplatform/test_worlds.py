"""Many worlds: each is judged once and kept, an interrupted run goes on, and the sums are those of the worlds."""

import json
import math

import numpy as np
import pytest

from scenarios.crossplatform import worlds as many
from scenarios.crossplatform.worlds import place, summary, worlds
from scenarios.files.schema import CrossPlatform, ServiceAnalyses, ServiceScenario
from scenarios.runs import parts
from scenarios.runs.parallel import spread
from scenarios.runs.rundir import FolderError


def scenario(count=3, seed=4, **fields):
    return ServiceScenario(name="tiny", seed=seed, analyses=ServiceAnalyses(CrossPlatform(worlds=count)), **fields)


def quiet(_what, _share):
    pass


@pytest.fixture
def asked(monkeypatch):
    """The seeds that are judged, in this process and without a simulation."""
    seeds = []

    def judge(_tables, world):
        seeds.append(world.seed)
        told = {"outside_hull": 0.5, "methods": [], "choices": [], "platforms": [], "notes": []}
        return {"seed": world.seed, "value": 10.0 * world.seed, **told}

    monkeypatch.setattr(many, "judge", judge)
    monkeypatch.setattr(many, "services", lambda *_, **__: {})
    monkeypatch.setattr(parts, "spread", lambda function, items: spread(function, items, workers=1))
    return seeds


def test_every_world_has_the_next_seed_and_comes_in_order(asked, tmp_path):
    made = worlds(scenario(), tmp_path, False, quiet)
    assert [one["seed"] for one in made] == asked == [4, 5, 6]


def test_what_was_judged_is_not_judged_again_and_more_worlds_are_the_missing_ones(asked, tmp_path):
    first = worlds(scenario(2), tmp_path, False, quiet)
    assert worlds(scenario(4), tmp_path, False, quiet)[:2] == first
    assert worlds(scenario(2, seed=6), tmp_path, False, quiet)[0]["seed"] == 6
    assert asked == [4, 5, 6, 7]
    worlds(scenario(1), tmp_path, True, quiet)
    assert asked == [4, 5, 6, 7, 4]


def test_an_interrupted_run_goes_on_where_it_stopped(asked, tmp_path, monkeypatch):
    def interrupted(what, share):
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worlds(scenario(), tmp_path, False, interrupted)
    assert asked == [4, 5]
    worlds(scenario(), tmp_path, False, quiet)
    assert asked == [4, 5, 6]


def test_a_damaged_world_is_judged_again(asked, tmp_path):
    worlds(scenario(), tmp_path, False, quiet)
    folder = place(scenario(), tmp_path)
    (folder / "5.json").write_text('{"seed": 5, "val')
    (folder / "6.json").write_text('{"seed": 6}')
    made = worlds(scenario(), tmp_path, False, quiet)
    assert asked[3:] == [5, 6]
    assert [one["value"] for one in made] == [40.0, 50.0, 60.0]
    assert sorted(file.name for file in folder.iterdir()) == ["4.json", "5.json", "6.json"]


def test_another_question_has_another_place(tmp_path):
    places = {place(scenario(**fields), tmp_path) for fields in ({}, {"horizon_s": 3600.0}, {"measured": ("pres",)})}
    assert len(places) == 3
    assert place(scenario(seed=9), tmp_path) == place(scenario(count=50), tmp_path) in places
    other = ServiceScenario(name="tiny", analyses=ServiceAnalyses(CrossPlatform(methods=("published",))))
    assert place(other, tmp_path) not in places


def test_a_folder_that_cannot_be_made_is_told(asked, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="Not a directory"):
        worlds(scenario(), tmp_path / "file", False, quiet)


def world(seed, coverage=0.9, measured=(), **errors):
    """Judge a world in which every method has the same error on two targets, or a pair of them."""
    rest = {"response_error": 0.1, "half_width": 0.1, "response_coverage": math.nan, "response_half_width": math.nan}
    rows = [
        {"method": name, "target": target, "service_error": error, "coverage": coverage, **rest}
        | {"measured": target in measured}
        for name, pair in errors.items()
        for target, error in zip(("pres", "pd4"), np.broadcast_to(pair, 2).tolist(), strict=True)
    ]
    choices = [{"method": name, "wrong": 0.1 * seed, "loss": 0.01} for name in errors]
    return {"seed": seed, "outside_hull": 0.5, "methods": rows, "choices": choices, "platforms": [], "notes": ["n"]}


def test_medians_are_over_pairs_of_world_and_target_and_choices_are_means_over_worlds():
    made = summary([world(1, testbed=(0.1, 0.2)), world(2, testbed=(0.3, 0.6)), world(3, testbed=0.3)])
    (testbed,) = made["methods"]
    assert (made["worlds"], testbed["service_error"]) == (3, pytest.approx(0.3))
    assert testbed["wrong"] == pytest.approx(0.2)
    targets = {row["target"]: row["service_error"] for row in made["targets"]}
    assert targets == {"pres": pytest.approx(0.3), "pd4": pytest.approx(0.3)}
    assert made["notes"] == ["n"]


def test_the_best_method_beats_every_rival_where_it_errs_less_than_the_least_of_them():
    made = summary(
        [
            world(1, testbed=(0.1, 0.1), cycle_mix=(0.2, 0.2), benchmark=(0.05, 0.3), calibrated=0.01),
            world(2, testbed=(0.1, 0.1), cycle_mix=(0.2, math.nan), benchmark=(0.3, math.nan), calibrated=0.01),
        ]
    )
    assert made["best"]["rivals"] == ["cycle_mix", "benchmark"]
    assert made["best"]["beats_every_rival"] == pytest.approx((0.5 + 1.0) / 2)
    assert {won["rival"]: won["share"] for won in made["best"]["beats"]} == {"cycle_mix": 1.0, "benchmark": 0.75}
    assert made["best"]["beats_each_rival"] == 0.75
    beaten = {row["method"]: row["beaten"] for row in made["methods"]}
    assert beaten["cycle_mix"] == 1.0
    assert beaten["benchmark"] == pytest.approx(2 / 3)
    assert beaten["calibrated"] == 0.0


def test_the_standard_error_of_a_share_of_wins_takes_worlds_as_independent():
    """One rival wins one of two pairs in every second world, the other the other pair: together they win more."""
    better = [(0.05, 0.3), (0.3, 0.3)] * 3
    made = [world(i, testbed=0.1, cycle_mix=each, benchmark=each[::-1]) for i, each in enumerate(better)]
    best = summary(made)["best"]
    assert (best["beats_every_rival"], best["beats_each_rival"]) == (0.5, 0.75)
    assert best["se"] == pytest.approx(np.std([0, 1] * 3, ddof=1) / math.sqrt(6))
    assert [won["se"] for won in best["beats"]] == pytest.approx([best["se"] / 2] * 2)


def test_platforms_of_which_there_is_a_log_do_not_count_as_beaten_or_not():
    made = [world(1, measured=("pres",), testbed=(0.1, 0.1), modern=(0.05, 0.3))]
    assert summary(made)["best"]["beats_every_rival"] == 1.0


def test_an_interval_of_coverage_takes_worlds_and_not_targets_as_independent():
    """Student's t with four degrees of freedom: 2.7764 standard errors."""
    shares = (0.8, 0.85, 0.9, 0.95, 1.0)
    (testbed,) = summary([world(i, coverage=share, testbed=0.1) for i, share in enumerate(shares)])["methods"]
    half = 2.77645 * math.sqrt(0.00625 / 5)
    ends = [testbed[f"coverage{end}"] for end in ("", "_low", "_high")]
    assert ends == pytest.approx([0.9, 0.9 - half, 0.9 + half], rel=1e-4)


def test_no_share_lies_beyond_0_and_1_and_few_worlds_give_no_interval():
    (wide,) = summary([world(i, coverage=share, testbed=0.1) for i, share in enumerate((0, 1, 1, 1, 1))])["methods"]
    assert (wide["coverage"], wide["coverage_high"]) == (0.8, 1.0)
    (few,) = summary([world(i, coverage=0.9, testbed=0.1) for i in range(4)])["methods"]
    assert math.isnan(few["coverage_low"])


def test_one_world_says_nothing_of_how_worlds_differ():
    (only,) = summary([world(1, testbed=0.1)])["methods"]
    assert math.isnan(only["coverage_low"])
    assert math.isnan(only["response_coverage"])
    assert summary([world(1, cycle_mix=0.1)])["best"]["rivals"] == ["cycle_mix"]
    assert math.isnan(summary([world(1, cycle_mix=0.1)])["best"]["beats_every_rival"])
    assert math.isnan(summary([world(1, testbed=0.1)])["best"]["beats_each_rival"])


def test_kept_worlds_are_readable_json(asked, tmp_path):
    worlds(scenario(1), tmp_path, False, quiet)
    kept = json.loads((place(scenario(), tmp_path) / "4.json").read_text())
    assert (kept["seed"], kept["value"]) == (4, 40.0)
