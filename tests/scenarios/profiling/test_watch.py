"""`wsc profile watch` names the function that was planted, once, and says what it could have found."""

import io
import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.profiling.changes.detection import WatchCriteria
from analysis.profiling.changes.series import WatchSpan
from analysis.profiling.query import QueryError
from models.randomness import stream
from scenarios.commands.app import app
from scenarios.profiling.watch import watch
from scenarios.views.terminal import dumps, show
from tests.helpers.drawn_profiles import GROWN, write


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    return write(tmp_path_factory.mktemp("grown"), stream(1, "watched profile"), 9.0)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return write(tmp_path_factory.mktemp("healthy"), stream(2, "watched profile"))


def shown(answer):
    text = io.StringIO()
    show(answer.section(), Console(file=text, width=160, highlight=False))
    return text.getvalue()


def test_a_function_that_grew_is_told_once_with_its_callers(grown):
    answer = watch([grown], "cpu")
    (change,) = answer.changes
    assert (change.function, change.with_callees, change.kind) == (f"f{GROWN}", False, "growth")
    assert change.low < 9.0 < change.high
    assert change.cost > 0.05
    assert change.callers == (f"mid{GROWN % 4}",)
    assert (change.since_s, change.reported_s) == (86400.0, 90000.0)
    assert "1 function became more expensive" in shown(answer)


def test_nothing_found_says_what_could_have_been(healthy):
    answer = watch([healthy], "cpu")
    assert not answer.changes
    text = shown(answer)
    assert "no function is shown to have become more expensive" in text
    assert "found within a day with 80% probability: growth of a function of 1% of cpu by" in text
    assert "a test that knew function and time would find" in text
    assert "days of the week cannot be told from changes" in text


def test_payload_and_frame_say_the_same(grown):
    answer = watch([grown], "cpu")
    payload = json.loads(dumps(answer.payload()))
    assert payload["kind"] == "profile watch"
    assert [change["function"] for change in payload["changes"]] == answer.frame()["function"].tolist()
    assert payload["bins"]["width_s"] == 3600.0
    assert payload["series"] == {"functions": 40, "subtrees": 45}


def test_the_criteria_decide(grown):
    assert not watch([grown], "cpu", WatchCriteria(min_factor=15.0)).changes
    assert not watch([grown], "cpu", WatchCriteria(min_cost=0.5)).changes
    first = watch([grown], "cpu", span=WatchSpan(until_s=86400.0))
    assert not first.changes
    assert "not known" in first.could_find()


def test_an_unknown_event_is_refused(grown):
    with pytest.raises(QueryError, match='unknown event "cycels"'):
        watch([grown], "cycels")


def test_the_command_fails_on_growth_if_asked(grown, healthy):
    def status(folder, *more):
        return CliRunner().invoke(app, ["profile", "watch", str(folder), "--event", "cpu", *more]).exit_code

    assert (status(grown), status(grown, "--fail"), status(healthy, "--fail")) == (0, 1, 0)
