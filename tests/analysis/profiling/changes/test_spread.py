"""How machines differ is what loops over dense tables sum, and what stays with machines is theirs."""

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.changes import spread as module
from analysis.profiling.changes.spread import DayCounts, MachinePlaces, MachineSpread
from models.randomness import stream

FUNCTIONS, STRATA, DAYS = 6, 3, 4


def drawn(seed):
    """Return places of visits to machines, and of each day counts by visit and function, and samples of everything.

    Visits 2i and 2i + 1 are to one machine; the last stratum has one machine. On some nothing was sampled.
    """
    rng = stream(seed, "machine spread")
    stratum_of, machine_of = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 0, 3, 4])
    place_of = np.repeat(np.arange(6), 2)
    counts = rng.poisson(rng.gamma(0.7, 6.0, (DAYS, 12, FUNCTIONS))) * (rng.random((DAYS, 12, 1)) < 0.8)
    counts[:, 4:, 5] = 0
    places = MachinePlaces(np.append(np.arange(12), -1), place_of, stratum_of, machine_of, STRATA)
    return places, counts


def day_of(counts, dtype):
    """Return a day, of which the last key does not count."""
    entries = [(visit, own) for own in range(FUNCTIONS) for visit in np.flatnonzero(counts[:, own])]
    first = np.append(0, np.cumsum((counts > 0).sum(axis=0)))
    key = np.array([visit for visit, _ in entries], dtype=np.int32)
    samples = np.array([counts[entry] for entry in entries], dtype=dtype)
    return DayCounts(first, key, samples, np.append(counts.sum(axis=1), 3).astype(float))


def test_among_no_pairs_none_is_found():
    assert not len(module._found(np.zeros(0, dtype=np.int64), np.array([3])))


@pytest.mark.parametrize("together", [1, 10**6])
@pytest.mark.parametrize("dtype", [np.uint16, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_sums_over_days_are_those_of_loops(seed, dtype, together, monkeypatch):
    monkeypatch.setattr(module, "_TOGETHER", together)
    monkeypatch.setattr(module, "_LASTING_PAIRS", 4)
    places, counts = drawn(seed)
    tags = np.array([[0, 1], [0, -1], [2, 1]])
    spread = MachineSpread(places, FUNCTIONS, tags)
    expected, in_parts, beside = np.zeros((7, FUNCTIONS)), np.zeros((4, 3, FUNCTIONS)), np.zeros(STRATA)
    strays, chosen = [], None
    for day in counts:
        spread.add(day_of(day, dtype))
        machines, of_day = day.reshape(6, 2, FUNCTIONS).sum(axis=1), {}
        for stratum in range(STRATA):
            here = places.stratum_of == stratum
            on_visits, on_machines = day[here[places.place_of]], machines[here]
            beside[stratum] = max(beside[stratum], (on_machines.sum(axis=1) > 0).sum())
            for own in range(FUNCTIONS):
                for count, size, sums in (
                    (on_machines[:, own], on_machines.sum(axis=1), slice(0, 4)),
                    (on_visits[:, own], on_visits.sum(axis=1), slice(4, 7)),
                ):
                    n1, n2, n3 = (float((size.astype(float) ** power).sum()) for power in (1, 2, 3))
                    if not count.sum():
                        continue
                    share = count.sum() / n1
                    square = ((count - share * size) ** 2).sum() - share * (1 - share) * (n1 - n2 / n1)
                    if sums.start:
                        expected[4, own] += square
                        expected[5, own] += share**2 * n2
                        expected[6, own] = max(expected[6, own], count.max())
                        continue
                    pairs = max(share**2 * (n2 - 2 * n3 / n1 + n2**2 / n1**2), 0.0)
                    amounts = np.array([square, pairs, count.sum(), share**2 * n2])
                    expected[:4, own] += amounts
                    for tag in tags[stratum][tags[stratum] >= 0]:
                        in_parts[:, tag, own] += amounts
                    of_day[own, stratum] = count.sum(), share, here
        chosen = chosen or set(sorted(of_day, key=lambda pair: (-of_day[pair][0], pair))[:4])
        for own, stratum in sorted(chosen & set(of_day)):
            _, share, here = of_day[own, stratum]
            for place in np.flatnonzero(here & (machines.sum(axis=1) > 0)):
                mean = share * machines[place].sum()
                strays.append((own * 2**31 + stratum, places.machine_of[place], machines[place, own] - mean, mean))
    seen = np.array([*spread.spread.of_machines, *spread.spread.of_clumps])
    np.testing.assert_allclose(seen, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(spread.in_parts, in_parts, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(spread.beside, beside)
    rows = pd.concat(spread.lasting.rows, ignore_index=True)
    np.testing.assert_allclose(rows.to_numpy(np.float64), np.array(strays), rtol=1e-9, atol=1e-9)
