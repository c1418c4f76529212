"""What is asked of a world: documented, bounded by its annotations, comparable."""

import ast
import dataclasses
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from models.fleet import world as scenario
from models.fleet.world import Fleet, Recording, Window, World

CLASSES = [each for each in vars(scenario).values() if getattr(each, "__module__", "") == scenario.__name__]
each_class = pytest.mark.parametrize("part", CLASSES, ids=lambda part: part.__name__)


def documented(part):
    """Fields of a class that are followed by a text."""
    tree = ast.parse(Path(scenario.__file__).read_text())
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == part.__name__)
    return {
        node.target.id
        for node, text in pairwise(body)
        if isinstance(node, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


@each_class
def test_every_field_is_documented(part):
    assert {field.name for field in dataclasses.fields(part)} <= documented(part)


@each_class
def test_parts_cannot_be_changed(part):
    assert part.__dataclass_params__.frozen
    assert part.__slots__


def test_the_default_world_is_within_its_own_bounds():
    adapter = TypeAdapter(World)
    assert adapter.validate_python(adapter.dump_python(World())) == World()


@pytest.mark.parametrize(
    ("field", "value"), [("seed", -1), ("epoch_s", 0.0), ("fleet", {"machines": 0}), ("nonsense", 1)]
)
def test_what_is_out_of_bounds_or_unknown_is_refused(field, value):
    with pytest.raises(ValidationError):
        TypeAdapter(World).validate_python({field: value})


def test_without_windows_there_is_one_over_the_horizon():
    assert World(horizon_s=600.0).windows == (Window("all", 0.0, 600.0),)


@given(st.permutations([Window(str(k), 600.0 * k, 600.0 * k + 300.0) for k in range(5)]))
def test_windows_come_in_order_of_time(windows):
    world = World(recording=Recording(tuple(windows)))
    assert [window.name for window in world.windows] == ["0", "1", "2", "3", "4"]


@given(st.integers(1, 5000), st.sampled_from([0.1, 1.0, 60.0, 300.0]))
def test_epochs_are_the_horizon_over_the_epoch(epochs, epoch_s):
    assert World(horizon_s=epochs * epoch_s, epoch_s=epoch_s).epochs == epochs


def test_worlds_are_equal_when_they_ask_for_the_same():
    assert World(fleet=Fleet(7)) == World(fleet=Fleet(7)) != World(fleet=Fleet(8))
