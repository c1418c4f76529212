"""What the report's line on new processors says to hold, and what it leaves undecided."""

import pytest

from analysis.crosscheck.check import Check
from scenarios.report.agreement import _concluded


def check(name, decisive, holds=True):
    """A check that holds or not, of numbers far from nothing or within the tolerance of it."""
    left = 0.2 if holds else 9.0
    return Check(name, left, 0.21, 0.1 if decisive else 0.3)


FLEET = check("upgrade_wsmeter", True)
SERVICES = [check(f"{which}:{job}", False) for job in ("a", "b") for which in ("upgrade_predicted", "upgrade_tried")]


@pytest.mark.parametrize(
    ("rows", "holds", "undecided"),
    [
        ([FLEET, *SERVICES], True, "for the fleet; 2 services undecided"),
        ([FLEET, *SERVICES[:2]], True, "for the fleet; 1 service undecided"),
        ([FLEET], True, ""),
        ([FLEET, check("upgrade_tried:a", True), SERVICES[0]], True, ""),
        ([check("upgrade_wsmeter", False), check("upgrade_tried:a", True)], True, "for a; the fleet undecided"),
        (SERVICES, None, ""),
        ([FLEET, check("upgrade_tried:a", False, holds=False)], False, ""),
    ],
)
def test_what_no_check_decides_is_said_to_be_undecided(rows, holds, undecided):
    made = _concluded(rows)
    assert (made.holds, made.undecided) == (holds, undecided)
