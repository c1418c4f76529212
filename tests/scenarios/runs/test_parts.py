"""Parts of a long computation: made once, kept as they are done, made again if what is kept is damaged."""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from scenarios.runs import parts
from scenarios.runs.parallel import spread
from scenarios.runs.parts import computed_parts, digest, folder_of


def quiet(_what, _share):
    pass


@pytest.fixture
def made(monkeypatch):
    """The seeds that something is made of, in this process."""
    monkeypatch.setattr(parts, "spread", lambda function, items: spread(function, items, workers=1))
    return []


def square(seeds):
    def make(seed):
        seeds.append(seed)
        return {"seed": seed, "square": seed**2}

    return make


def test_what_is_kept_is_read_and_the_rest_made(made, tmp_path):
    first = computed_parts([1, 2], square(made), tmp_path, {"seed", "square"}, quiet)
    again = computed_parts([1, 2, 3], square(made), tmp_path, {"seed", "square"}, quiet)
    assert made == [1, 2, 3]
    assert again == [*first, {"seed": 3, "square": 9}]


def test_force_makes_everything_again(made, tmp_path):
    computed_parts([1, 2], square(made), tmp_path, {"seed"}, quiet)
    computed_parts([1, 2], square(made), tmp_path, {"seed"}, quiet, force=True)
    assert made == [1, 2, 1, 2]


def test_a_folder_in_which_nothing_came_to_be_is_not_left_behind(made, tmp_path):
    def fail(seed):
        raise RuntimeError(f"seed {seed}")

    for done in ([], [1]):
        computed_parts(done, square(made), tmp_path / "1", {"seed"}, quiet) if done else None
        with pytest.raises(RuntimeError, match="seed 2"):
            computed_parts([*done, 2], fail, tmp_path / str(len(done)), {"seed"}, quiet)
    assert [folder.name for folder in tmp_path.iterdir()] == ["1"]


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"seed": 2, "square": 4}', '{"seed": 1}'])
def test_what_is_damaged_is_made_again(made, tmp_path, damage):
    computed_parts([1], square(made), tmp_path, {"seed", "square"}, quiet)
    (tmp_path / "1.json").write_text(damage)
    assert computed_parts([1], square(made), tmp_path, {"seed", "square"}, quiet) == [{"seed": 1, "square": 1}]
    assert made == [1, 1]
    assert json.loads((tmp_path / "1.json").read_text())["square"] == 1


def test_what_fails_keeps_what_was_done_before(made, tmp_path):
    def make(seed):
        if seed == 2:
            raise KeyboardInterrupt
        return square(made)(seed)

    with pytest.raises(KeyboardInterrupt):
        computed_parts([1, 2, 3], make, tmp_path, {"seed"}, quiet)
    assert [file.name for file in tmp_path.iterdir()] == ["1.json"]


def test_the_share_done_is_told_from_what_is_kept_to_all(made, tmp_path):
    computed_parts([1], square(made), tmp_path, {"seed"}, quiet)
    told = []
    computed_parts(
        [1, 2], square(made), tmp_path, {"seed"}, lambda what, share: told.append((what, share)), what="squaring"
    )
    assert told == [("squaring", 0.5), ("squaring", 1.0)]


def test_folders_differ_by_what_is_asked_and_by_the_libraries(tmp_path):
    one = folder_of(tmp_path, "a", {"top": 1}, ["scipy"])
    assert one == folder_of(tmp_path, "a", {"top": 1}, ["scipy"])
    others = [folder_of(tmp_path, *rest) for rest in (("b", {"top": 1}, ["scipy"]), ("a", {"top": 2}, ["scipy"]))]
    assert len({one, *others, folder_of(tmp_path, "a", {"top": 1}, ["pandas"])}) == 4


def test_items_may_have_names_of_their_own_and_run_through_an_executor(tmp_path):
    def make(pair):
        return {"corner": pair[0], "seed": pair[1], "both": f"{pair[0]} {pair[1]}"}

    def named(pair):
        return {"corner": pair[0], "seed": pair[1]}

    pairs = [("base", 1), ("wide", 1), ("base", 2)]
    with ThreadPoolExecutor(2) as pool:
        first = computed_parts(pairs, make, tmp_path, {"both"}, quiet, named=named, executor=pool)
    assert [one["both"] for one in first] == ["base 1", "wide 1", "base 2"]
    assert {file.name for file in tmp_path.iterdir()} == {"base-1.json", "wide-1.json", "base-2.json"}
    (tmp_path / "wide-1.json").write_text('{"corner": "base", "seed": 1, "both": "base 1"}')
    with ThreadPoolExecutor(1) as pool:
        assert computed_parts(pairs, make, tmp_path, {"both"}, quiet, named=named, executor=pool) == first


def test_what_a_killed_process_left_half_written_is_removed_and_others_stay(made, tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead, living = (tmp_path / f".1.json.{process}.0a1b2c3d.partial" for process in (gone.pid, os.getpid()))
    for file in (dead, living):
        file.write_text("{")
    computed_parts([2], square(made), tmp_path, {"seed"}, quiet)
    assert not dead.exists()
    assert living.exists()


def test_the_digest_is_of_what_parts_say_in_their_order():
    one, other = {"seed": 1, "share": 0.1}, {"seed": 2, "share": None}
    assert digest([one, other]) == digest([dict(reversed(one.items())), other])
    assert len({digest([one, other]), digest([other, one]), digest([one, other | {"share": 0.1}])}) == 3
    text = b'[{"seed":1,"share":0.1},{"seed":2,"share":null}]'
    assert digest([one, other]) == hashlib.sha256(text).hexdigest()
