"""What all tests share: examples have no deadline, for compiled code may be compiled in one; and a small profile."""

import pytest
from hypothesis import settings

from tests import small_profile as profiles

settings.register_profile("testbed", deadline=None)
settings.load_profile("testbed")

collect_ignore = ["interchange", "web"]
"""Scripts that need Node.js, a browser and other readers of profiles; `make web` and `make interop` run them."""


@pytest.fixture(scope="module")
def small_profile(tmp_path_factory):
    """The folder of a profile written by hand."""
    return profiles.write(tmp_path_factory.mktemp("profile") / "run")


@pytest.fixture(scope="module")
def pages(small_profile):
    """The pages of that profile, to be asked."""
    from scenarios.web.application import application

    return application(small_profile)
