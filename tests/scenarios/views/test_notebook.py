"""Progress in a notebook is drawn while work is going on, and leaves nothing."""

import builtins
import sys
import types
from threading import Event

import pytest

from scenarios.views import notebook, terminal


class ZMQInteractiveShell:
    """The class that notebooks are known by."""


class Shown(list):
    """What a notebook has been given to show, in order."""

    def __init__(self):
        self.started = Event()

    def display(self, data, *, raw, display_id):
        self.update(data, raw=raw)
        self.started.set()
        return self

    def update(self, data, *, raw):
        assert raw
        self.append(data)


@pytest.fixture
def shown(monkeypatch):
    shown = Shown()
    module = types.ModuleType("IPython.display")
    module.display = shown.display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr(notebook, "_BETWEEN_S", 0.0)
    return shown


def test_bars_are_drawn_and_taken_away(shown, capsys):
    with terminal.progress() as tell:
        tell("reading <b>", 0.0)
        tell("simulating", 0.25)
    assert [each["text/plain"] for each in shown] == ["", "reading <b>", "reading <b>\nsimulating 25%", ""]
    assert "<progress max=1></progress> reading &lt;b&gt;" in shown[2]["text/html"]
    assert "<progress value=0.250 max=1></progress> simulating" in shown[2]["text/html"]
    assert shown[-1]["text/html"] == ""
    assert capsys.readouterr() == ("", "")


def test_short_work_draws_nothing(shown):
    with terminal.progress(after_s=60.0) as tell:
        tell("simulating", 0.5)
    assert shown == []


def test_long_work_draws_though_it_tells_nothing_new(shown):
    with terminal.progress(after_s=0.001) as tell:
        tell("compiling", 0.0)
        assert shown.started.wait(timeout=60)
    assert [each["text/plain"] for each in shown[-2:]] == ["compiling", ""]


def test_bars_go_when_work_fails(shown):
    with pytest.raises(KeyboardInterrupt), terminal.progress():
        raise KeyboardInterrupt
    assert shown[-1]["text/html"] == ""
