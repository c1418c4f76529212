import duckdb
import numpy as np
import pandas as pd
import pytest

from analysis.profiling import frames
from analysis.profiling.frames import BrokenStacksError, Frames, Weights


def cursor_of(rows, apart=1):
    """Return a connection with frames (stack, depth, location) and a function for a hundred locations."""
    connection = duckdb.connect()
    given = np.array(rows, dtype=np.int32).reshape(-1, 3)
    for number, name in enumerate(("stack", "depth", "location")):
        connection.register(f"c{number}", pd.DataFrame({"n": np.arange(len(given)), name: given[:, number]}))
    connection.execute(
        "CREATE TABLE stacks AS SELECT * EXCLUDE n FROM c0 JOIN c1 USING (n) JOIN c2 USING (n) ORDER BY n"
    )
    connection.execute(
        f"CREATE TABLE function_codes AS SELECT ({apart} * i + 3)::INTEGER AS location, (i % 5)::INTEGER AS code"
        " FROM range(100) r(i)"
    )
    return connection


def random_rows(seed, apart=1, stacks=40):
    """Return frames of stacks with gaps between their numbers, in order."""
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.choice(200, stacks, replace=False))
    return [(n, d, apart * rng.integers(0, 100) + 3) for n in numbers for d in range(rng.integers(1, 5))]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("at_once", [7, 1000])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("apart", [1, 7])
def test_all_frames_are_read_once_in_order(seed, at_once, shuffled, apart, monkeypatch):
    rows = random_rows(seed, apart)
    given = np.random.default_rng(seed).permutation(rows).tolist() if shuffled else rows
    monkeypatch.setattr(frames, "_FRAMES_AT_ONCE", at_once)
    monkeypatch.setattr(frames, "_PATHS_AT_ONCE", at_once)
    for read in (frames.read, frames.read_by_leaf):
        found = {}
        for part in read(cursor_of(given, apart)):
            for stack, begin, end in zip(part.stack, part.start, part.start[1:], strict=False):
                assert stack not in found
                found[int(stack)] = part.code[begin:end].tolist()
        expected = {}
        for stack, _, location in rows:
            expected.setdefault(stack, []).append((location - 3) // apart % 5)
        assert found == expected


@pytest.mark.parametrize(
    "rows",
    [
        [(3, 1, 3)],
        [(3, 0, 3), (3, 2, 3)],
        [(3, 0, 3), (3, 0, 10)],
        [(3, 0, 2)],
        [(3, 0, 4000)],
        [(2, 0, 3), (3, 1, 3)],
    ],
)
@pytest.mark.parametrize("apart", [1, 7])
def test_broken_stacks_are_refused(rows, apart):
    for read in (frames.read, frames.read_by_leaf):
        with pytest.raises(BrokenStacksError):
            list(read(cursor_of(rows, apart)))


def test_stacks_without_any_location_are_refused():
    connection = cursor_of([(3, 0, 3)])
    connection.execute("DELETE FROM function_codes")
    with pytest.raises(BrokenStacksError):
        list(frames.read(connection))


@pytest.mark.parametrize("seed", range(5))
def test_equal_paths_have_the_first_of_them(seed):
    rng = np.random.default_rng(seed)
    paths = [tuple(rng.integers(0, 2, rng.integers(1, 5))) for _ in range(50)]
    numbers = np.sort(rng.choice(1000, 50, replace=False))
    start = np.append(0, np.cumsum([len(path) for path in paths]))
    found = frames.same_paths(Frames(numbers, start, np.concatenate(paths)), 2)
    assert found.tolist() == [numbers[paths.index(path)] for path in paths]


@pytest.mark.parametrize("scale", [1, 2**70])
@pytest.mark.parametrize("shift", [0, 2**61])
def test_each_item_counts_once_per_stack_whatever_its_size(scale, shift):
    rng = np.random.default_rng(0)
    place, item = rng.integers(0, 20, 300), rng.integers(0, 9, 300)
    value = np.array([int(each) * scale for each in rng.integers(0, 9, 20)], dtype=np.int64 if scale == 1 else object)
    weights = Weights(np.arange(20), np.ones(20, dtype=np.int64), value)
    halves = [frames.once_per_stack(place[part], item[part] + shift, weights) for part in (place < 9, place >= 9)]
    found = frames.together(halves)
    expected = []
    for each in set(item.tolist()):
        within = set(place[item == each].tolist())
        expected.append((each + shift, len(within), sum(int(value[at]) for at in within)))
    assert list(found.itertuples(index=False, name=None)) == sorted(expected, key=lambda row: (-row[2], row[0]))


def test_sums_are_added_up_a_few_parts_at_a_time(monkeypatch):
    monkeypatch.setattr(frames, "_PENDING", 3)
    parts = [pd.DataFrame({"item": [n % 3, n % 3 + 1], "samples": 1, "value": n}) for n in range(10)]
    every = pd.concat(parts).groupby("item").sum()
    found = frames.together(iter(parts)).set_index("item")
    pd.testing.assert_frame_equal(found.sort_index(), every, check_dtype=False, check_index_type=False)
