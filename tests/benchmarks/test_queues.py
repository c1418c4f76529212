import json
import sys

import numpy as np
import pytest

from benchmarks import queues as benchmark

TOLD = {"seconds": [1.0, 3.0], "response_s": 1.36}


@pytest.fixture
def stand_in(tmp_path):
    """Stands for a Python with LINE: notes how it was called and tells what it is told to."""

    def make(answer, status=0):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\nshift 2\necho \"$@\" >> {tmp_path}/calls\necho '{answer}'\nexit {status}\n")
        python.chmod(0o755)
        return str(python), tmp_path / "calls"

    return make


@pytest.mark.parametrize("policy", benchmark.POLICIES)
def test_all_forms_serve_the_same_requests(policy):
    """So their mean response times are the same; those of the fused form are of the same draws."""
    (_, own), (_, array) = benchmark.fused(policy, 300, 1), benchmark.arrays(policy, 300, 1)
    _, slow = benchmark.arrays(policy, 300, 1, benchmark.twin)
    assert own == pytest.approx(array, rel=1e-9)
    assert slow == pytest.approx(array, rel=1e-9)


def test_a_longer_run_of_line_is_judged_by_what_it_takes_beyond_a_short_one(stand_in):
    python, calls = stand_in(json.dumps(TOLD))
    assert benchmark.line("priority", python, 1000, 2) == (800 / 2.0, 1.36)
    assert calls.read_text().split() == ["FCFSPRPRIO", "4", "0.7", "3", "2", "200", "1000"]


def test_what_line_says_when_it_fails_is_passed_on(stand_in):
    python, _ = stand_in("{}", status=1)
    with pytest.raises(SystemExit, match="LINE failed for ps"):
        benchmark.line("ps", python, 1000, 1)


def test_line_has_no_round_robin():
    assert np.isnan(benchmark.line("rr", "never run", 1000, 1)).all()


def ran(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["queues.py", "--requests", "200", "--twin", "50", "--repeats", "1", *words])
    benchmark.main()
    return capsys.readouterr().out.splitlines()


def test_without_line_the_tables_are_printed_and_say_so(monkeypatch, capsys):
    printed = ran(monkeypatch, capsys)
    assert "LINE is left out: no --line-python was given" in printed
    assert [row.split()[0] for row in printed[1:6]] == list(benchmark.POLICIES)
    assert len(printed[-len(benchmark.MODELS) :]) == len(benchmark.MODELS)
    assert all(row.count("|") == 5 for row in printed[-len(benchmark.MODELS) :])


def test_with_line_its_ratio_is_printed(monkeypatch, capsys, stand_in):
    python, _ = stand_in(json.dumps(TOLD))
    printed = ran(monkeypatch, capsys, "--line-python", python)
    assert any(row.startswith("LINE's engine takes at least") for row in printed)
    assert "1.360" in printed[1]
