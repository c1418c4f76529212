"""The types of requests of a service, and the reuse distances that decide how often they miss."""

from dataclasses import replace

import numpy as np
import pytest

from models.services.applications import COLLECTION, CURVE_BYTES, TICKS, Activities, build_activities, present
from models.services.world import Application, Mechanisms, Runtime

SLOPES = pytest.mark.parametrize(("types", "slope"), [(22, -0.83), (6, -0.77), (13, -0.89)])


def _drawn(seed=1, name="service", mechanisms=None, runtime=None, **application) -> Activities:
    return build_activities(Application(**application), runtime or Runtime(), mechanisms or Mechanisms(), seed, name)


def _service_curve(drawn: Activities, size_bytes) -> np.ndarray:
    """Misses per instruction of all requests and the collections that they bring about, in the long run."""
    work = drawn.popularity * drawn.instructions[: drawn.types]
    collections = (work * drawn.allocation_bytes[: drawn.types]).sum() / drawn.heap_bytes
    work = np.append(work, collections * drawn.instructions[COLLECTION])
    return work @ drawn.misses_per_instruction(size_bytes)[:TICKS] / work.sum()


def _power_law(drawn: Activities, sizes=7) -> tuple[float, float]:
    """Slope and largest normalised residual of the power law through some sizes from 16 KiB to 16 MiB."""
    size = 2.0 ** np.linspace(14, 24, sizes)
    curve = _service_curve(drawn, size)
    slope, level = np.polyfit(np.log(size), np.log(curve), 1)
    return slope, np.abs(np.exp(level + slope * np.log(size)) / curve - 1).max()


def test_the_same_seed_and_name_give_the_same_service_and_others_another():
    one, again = _drawn(), _drawn()
    np.testing.assert_array_equal(one.weights, again.weights)
    np.testing.assert_array_equal(one.instructions, again.instructions)
    for other in (_drawn(seed=2), _drawn(name="benchmark")):
        assert not np.allclose(one.weights, other.weights)


def test_means_are_over_the_types_in_their_long_run_mix():
    asked, drawn = Application(), _drawn()
    work = drawn.popularity * drawn.instructions[: drawn.types]
    share = work / work.sum()
    requests = slice(drawn.types)
    assert work.sum() == pytest.approx(asked.instructions_per_request)
    assert share @ drawn.branch_misses[requests] == pytest.approx(asked.branch_misses_per_instruction)
    assert share @ drawn.allocation_bytes[requests] == pytest.approx(asked.allocation_bytes_per_instruction)
    assert share @ drawn.shared_write_share[requests] == pytest.approx(asked.shared_write_share)
    assert share @ drawn.misses_per_instruction(np.array([32.0 * 2**10]))[requests, 0] == pytest.approx(0.058)
    assert drawn.popularity @ drawn.other_tiers_s == pytest.approx(asked.other_tiers_s)


def test_popularity_follows_zipfs_law():
    np.testing.assert_allclose(_drawn(types=3, popularity_exponent=1.0).popularity, np.array([6, 3, 2]) / 11)


def test_without_spreads_all_types_are_alike():
    still = {name: 0.0 for name in Application.__annotations__ if name.endswith("_sd")}
    drawn = _drawn(types=4, **still)
    for trait in (drawn.instructions, drawn.core_cpi, drawn.overlap, drawn.weights):
        np.testing.assert_allclose(trait[:4], np.broadcast_to(trait[0], trait[:4].shape), rtol=1e-12)


def test_misses_are_a_sum_of_log_logistic_working_sets():
    drawn = _drawn(types=1)
    expected = sum(w * s**2 / (s**2 + 1e5**2) for w, s in zip(drawn.weights[0], drawn.set_bytes, strict=True))
    assert drawn.misses_per_instruction(np.array([1e5]))[0, 0] == pytest.approx(expected, rel=1e-12)


def test_a_larger_cache_never_misses_more():
    for curve in ("power", "cliffs"):
        assert (np.diff(_drawn(miss_curve=curve).misses_per_instruction(np.geomspace(1e3, 1e9, 60))) < 0).all()


def test_half_of_a_working_set_is_missed_in_a_cache_of_its_size():
    np.testing.assert_array_equal(present(np.array([2.0, 4.0]), np.array([2.0])), [[0.5], [0.8]])


@pytest.mark.parametrize("slope", [-0.77, -0.83, -0.89, -1.0])
def test_working_sets_make_a_power_law_to_four_hundredths_where_nothing_disturbs_them(slope):
    drawn = _drawn(
        mechanisms=Mechanisms(collection=False), miss_exponent=slope, miss_exponent_sd=0, reuse_log_sd=0,
        runtime=Runtime(collection_instructions=0.0),
    )  # fmt: skip
    fitted, largest = _power_law(drawn, 21)
    assert fitted == pytest.approx(slope, abs=0.005)
    assert largest < 0.04


@SLOPES
def test_without_jitter_the_whole_service_has_the_slope_that_was_asked_for(types, slope):
    drawn = _drawn(types=types, miss_exponent=slope, reuse_log_sd=0)
    curve = _service_curve(drawn, CURVE_BYTES)
    assert np.polyfit(np.log(CURVE_BYTES), np.log(curve), 1)[0] == pytest.approx(slope, abs=0.002)


@pytest.mark.statistical
@SLOPES
def test_a_service_is_as_far_from_a_power_law_as_published(types, slope):
    """Slopes and largest residuals at seven sizes (Stewart et al. 2008, Fig. 3: 0.03 to 0.09).

    The seeds are fixed. With others, the median of 100 slopes stays within 0.01 of what is asked for and that of their
    residuals in 0.03 to 0.09 in all but one of some millions: the bounds are more than five standard errors away.
    """
    fits = np.array([_power_law(_drawn(seed, types=types, miss_exponent=slope)) for seed in range(100)])
    assert np.median(fits[:, 0]) == pytest.approx(slope, abs=0.01)
    assert 0.03 < np.median(fits[:, 1]) < 0.09
    assert ((fits[:, 1] > 0.02) & (fits[:, 1] < 0.1)).mean() > 0.7


@pytest.mark.parametrize("curve", ["power", "cliffs"])
def test_what_types_have_of_their_own_changes_neither_the_whole_service_nor_how_often_they_miss_at_32_kib(curve):
    size, reference = np.geomspace(2.0**14, 2.0**24, 21), np.array([2.0**15])
    alike, apart = (_drawn(type_reuse_log_sd=sd, miss_curve=curve) for sd in (0.0, 3.0))
    np.testing.assert_allclose(_service_curve(apart, size), _service_curve(alike, size), rtol=1e-5)
    each = [drawn.misses_per_instruction(reference)[:, 0] for drawn in (alike, apart)]
    np.testing.assert_allclose(each[1], each[0], rtol=1e-12)


def test_types_have_reuse_distances_of_their_own():
    def spread(sd):
        drawn = _drawn(type_reuse_log_sd=sd, misses_log_sd=0, miss_exponent_sd=0)
        return np.log(drawn.misses_per_instruction(np.array([2.0**20]))[: drawn.types, 0]).std()

    assert spread(0.0) < 1e-9
    assert spread(1.0) > 0.2
    assert spread(3.0) > 2 * spread(1.0)


def test_a_type_that_is_all_of_the_service_has_its_curve():
    runtime, off = Runtime(collection_instructions=0.0), Mechanisms(collection=False)
    sizes = np.geomspace(1e4, 1e7, 9)
    one, another = (_drawn(runtime=runtime, mechanisms=off, types=1, type_reuse_log_sd=sd) for sd in (0.0, 3.0))
    np.testing.assert_allclose(
        one.misses_per_instruction(sizes)[0], another.misses_per_instruction(sizes)[0], rtol=1e-9
    )


def test_cliffs_are_no_power_law():
    assert min(_power_law(_drawn(seed, miss_curve="cliffs"))[1] for seed in range(5)) > 0.5


def test_collections_have_the_flattest_curve():
    drawn = _drawn(miss_exponent_sd=0, reuse_log_sd=0, type_reuse_log_sd=0)
    small, large = drawn.misses_per_instruction(np.array([2.0**15, 2.0**22])).T
    fall = np.log(large / small)
    assert fall[COLLECTION] > fall[TICKS] == pytest.approx(fall[0])
    assert small[[COLLECTION, TICKS]] == pytest.approx([0.058 * 1.6, 0.058 * 2.0])


def test_collections_come_as_often_as_allocation_fills_the_heap():
    drawn = _drawn()
    requests = np.arange(1.0, drawn.types + 1)
    collections, ticks = drawn.rates(requests[None])[0, drawn.types :]
    allocated = requests @ (drawn.instructions * drawn.allocation_bytes)[: drawn.types]
    assert collections * drawn.heap_bytes == pytest.approx(allocated)
    assert ticks == 1.0


def test_what_is_switched_off_has_no_instructions_and_never_comes():
    off = replace(Mechanisms(), collection=False, ticks=False, spin=False)
    drawn = _drawn(mechanisms=off)
    np.testing.assert_array_equal(drawn.instructions[[COLLECTION, TICKS]], 0.0)
    assert drawn.rates(np.ones((1, drawn.types)))[0, COLLECTION] == 0.0
    assert drawn.spin_share == 0.0
    np.testing.assert_array_equal(drawn.core_cpi, _drawn().core_cpi)


def test_even_extreme_spreads_keep_traits_within_their_bounds():
    drawn = _drawn(miss_exponent_sd=3.0, overlap_log_sd=2.0, shared_write_share=0.9)
    assert np.isfinite(drawn.weights).all()
    assert (drawn.weights > 0).all()
    assert drawn.overlap.min() >= 1.0
    assert drawn.shared_write_share.max() <= 1.0
