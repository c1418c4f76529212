"""Names of what is not finished: a file appears whole or not at all, and what the dead left is found."""

import os
import subprocess
import sys

import pytest

from scenarios.runs.disk import abandoned, hidden, whole


def test_a_place_that_cannot_be_taken_stays_as_it_is(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"), whole(tmp_path / "taken") as partial:
        partial.write_bytes(b"text")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_an_interrupted_writer_leaves_the_former_file(tmp_path):
    (tmp_path / "kept").write_text("former")

    def interrupted():
        with whole(tmp_path / "kept") as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"kept": "former"}


def test_only_what_the_dead_left_is_abandoned(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    living = hidden(tmp_path / "a.json")
    dead = living.with_name(living.name.replace(str(os.getpid()), str(ended.pid)))
    others = [".notes.partial", "a.json.1.0a1b2c3d.partial", "a.json"]
    for name in (living.name, dead.name, *others):
        (tmp_path / name).touch()
    assert list(abandoned(tmp_path)) == [dead]
