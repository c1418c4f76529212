import numpy as np
import pytest

from analysis.profiling import pairs as module
from analysis.profiling.pairs import PairNumbers


@pytest.mark.parametrize("places", [3, 2**60])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_have_numbers_of_their_own_however_many_come_at_once(monkeypatch, seed, places):
    monkeypatch.setattr(module, "_FEWEST", 2)
    rng, pairs, numbers = np.random.default_rng(seed), PairNumbers(), {}
    for size in (0, 1, 50, 3, 200, 200):
        place, key = rng.integers(-places, places, size), rng.integers(-1, 40, size).astype(np.int32)
        for own, number in zip(zip(place.tolist(), key.tolist(), strict=True), pairs.of(place, key), strict=True):
            assert (number == -1) == (own[1] == -1)
            assert own[1] == -1 or numbers.setdefault(own, number) == number
    assert sorted(numbers.values()) == list(range(len(pairs)))
    for (place, key), number in numbers.items():
        assert (pairs.place[number], pairs.key[number]) == (place, key)


@pytest.mark.parametrize("shift", [0, 8, 16, 20, 32, 40, 48])
def test_pairs_whose_places_are_multiples_are_in_many_chains(shift):
    pairs, place = PairNumbers(), np.arange(8_000) << shift
    assert pairs.of(place, np.zeros(len(place), dtype=np.int32)).tolist() == list(range(len(place)))
    assert np.count_nonzero(pairs._last) > len(place) // 2
