"""What all tests share: examples are 30 and have no deadline, for code may be compiled in one; and a small profile."""

import gc

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from scenarios.commands.entry import GARBAGE
from tests.helpers import small_profile as profiles
from tests.helpers.one_compiles import take_turns

settings.register_profile("testbed", deadline=None, max_examples=30)
settings.load_profile("testbed")

collect_ignore = ["interchange", "web"]
"""Scripts that need Node.js, a browser and other readers of profiles; `make web` and `make interop` run them."""


def pytest_configure(config):
    """Have processes that test at the same time compile nothing twice."""
    if hasattr(config, "workerinput"):
        take_turns()
    config.pluginmanager.register(FilesWithExamples())


class FilesWithExamples:
    """Docstrings are looked through in those files alone that hold an example: three in four hold none."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path):
        """Leave out the examples of a file without any."""
        collectors = yield
        if file_path.suffix == ".py" and b">>> " not in file_path.read_bytes():
            return [each for each in collectors if not isinstance(each, DoctestModule)]
        return collectors


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for garbage among what the tests themselves make, not in half a million objects of the tests collected.

    What libraries load later, Numba above all, is looked through as seldom as by the command `wsc`.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*GARBAGE)
        gc.enable()


def pytest_unconfigure():
    """Let objects go in the order in which they are looked for; libraries count those that are left at the end."""
    gc.unfreeze()


@pytest.fixture(scope="module")
def small_profile(tmp_path_factory):
    """The folder of a profile written by hand."""
    return profiles.write(tmp_path_factory.mktemp("profile") / "run")


@pytest.fixture(scope="module")
def pages(small_profile):
    """The pages of that profile, to be asked."""
    from scenarios.web.application import application

    return application(small_profile)
