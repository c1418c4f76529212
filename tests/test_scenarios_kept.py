"""Parts of a long computation: made once, kept as they are done, made again if what is kept is damaged."""

import json

import pytest

from scenarios import kept
from scenarios.kept import each, folder_of
from scenarios.parallel import spread


def quiet(_what, _share):
    pass


@pytest.fixture
def made(monkeypatch):
    """The seeds that something is made of, in this process."""
    monkeypatch.setattr(kept, "spread", lambda function, items: spread(function, items, workers=1))
    return []


def square(seeds):
    def make(seed):
        seeds.append(seed)
        return {"seed": seed, "square": seed**2}

    return make


def test_what_is_kept_is_read_and_the_rest_made(made, tmp_path):
    first = each([1, 2], square(made), tmp_path, {"seed", "square"}, quiet)
    again = each([1, 2, 3], square(made), tmp_path, {"seed", "square"}, quiet)
    assert made == [1, 2, 3]
    assert again == [*first, {"seed": 3, "square": 9}]


def test_force_makes_everything_again(made, tmp_path):
    each([1, 2], square(made), tmp_path, {"seed"}, quiet)
    each([1, 2], square(made), tmp_path, {"seed"}, quiet, force=True)
    assert made == [1, 2, 1, 2]


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"seed": 2, "square": 4}', '{"seed": 1}'])
def test_what_is_damaged_is_made_again(made, tmp_path, damage):
    each([1], square(made), tmp_path, {"seed", "square"}, quiet)
    (tmp_path / "1.json").write_text(damage)
    assert each([1], square(made), tmp_path, {"seed", "square"}, quiet) == [{"seed": 1, "square": 1}]
    assert made == [1, 1]
    assert json.loads((tmp_path / "1.json").read_text())["square"] == 1


def test_what_fails_keeps_what_was_done_before(made, tmp_path):
    def make(seed):
        if seed == 2:
            raise KeyboardInterrupt
        return square(made)(seed)

    with pytest.raises(KeyboardInterrupt):
        each([1, 2, 3], make, tmp_path, {"seed"}, quiet)
    assert [file.name for file in tmp_path.iterdir()] == ["1.json"]


def test_the_share_done_is_told_from_what_is_kept_to_all(made, tmp_path):
    each([1], square(made), tmp_path, {"seed"}, quiet)
    told = []
    each([1, 2], square(made), tmp_path, {"seed"}, lambda what, share: told.append((what, share)), what="squaring")
    assert told == [("squaring", 0.5), ("squaring", 1.0)]


def test_folders_differ_by_what_is_asked_and_by_the_libraries(tmp_path):
    one = folder_of(tmp_path, "a", {"top": 1}, ["scipy"])
    assert one == folder_of(tmp_path, "a", {"top": 1}, ["scipy"])
    others = [folder_of(tmp_path, *rest) for rest in (("b", {"top": 1}, ["scipy"]), ("a", {"top": 2}, ["scipy"]))]
    assert len({one, *others, folder_of(tmp_path, "a", {"top": 1}, ["pandas"])}) == 4
