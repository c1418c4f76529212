"""Ctrl-C at any moment, while modules are being loaded, and where a library hides it; outputs that nobody reads."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.commands import entry

ROOT = Path(__file__).parents[3]
SCRIPT = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                if {swallowed}:
                    raise ImportError("the module failed to import") from None
                raise

sys.meta_path.insert(0, Interrupt())
from scenarios.commands.entry import main
sys.argv = ["wsc", "platforms", "piii"]
main()
"""


def wsc(module, swallowed=False, ignored=False):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(module=module, swallowed=swallowed)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None,
    )


@pytest.mark.parametrize(
    ("module", "swallowed"),
    [
        ("typer", False),
        ("scenarios.files.options", False),
        ("scenarios.crossplatform.platforms", False),
        ("scenarios.crossplatform.platforms", True),
    ],
)
def test_an_interrupt_while_modules_are_loaded_ends_in_a_plain_line(module, swallowed):
    ended = wsc(module, swallowed)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_without_an_interrupt_nothing_changes():
    assert wsc("nothing").stdout.startswith("piii")


def test_where_interrupts_are_ignored_they_stay_so():
    ended = wsc("scenarios.crossplatform.platforms", ignored=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_handlers_of_others_are_left_alone():
    before = signal.getsignal(signal.SIGINT)
    with entry.interruptible():
        assert signal.getsignal(signal.SIGINT) is before
    assert not entry.interrupted()


def _shell(command):
    return subprocess.run(
        ["bash", "-c", command.replace("wsc", f"{sys.executable} -m wsc") + '; echo "${PIPESTATUS[0]}" >&2'],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    ).stderr.splitlines()


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("wsc --help | true", ["141"]),  # 1 would be an answer
        ("wsc platforms pres >&-", ["0"]),
        ("wsc --help > /dev/full", ["No space left on device", "2"]),
    ],
)
def test_an_output_that_nobody_reads_or_that_has_no_room_is_no_answer(command, lines):
    assert _shell(command) == lines


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("-- as this\nSELECT 1", True),
        ("--note\nSELECT 1", True),
        ("--where a = 2\nSELECT 1", True),
        ("--where=a\nb", False),
    ],
)
def test_a_query_that_begins_with_a_comment_is_no_option(text, comment):
    assert entry._is_comment(text) is comment


def test_a_command_looks_for_garbage_seldom():
    code = "import gc, sys; from scenarios.commands.entry import GARBAGE, main; sys.argv = ['wsc', '--version']\n"
    code += "try:\n    main()\nexcept SystemExit:\n    sys.exit(gc.get_threshold() != GARBAGE)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
