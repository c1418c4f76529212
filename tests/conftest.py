"""What all tests share: examples are 50 and have no deadline, for code may be compiled in one; and a small profile."""

import pytest
from hypothesis import settings

from tests import small_profile as profiles

settings.register_profile("testbed", deadline=None, max_examples=50)
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
