"""What the report's line on new processors says to hold, and what it leaves undecided."""

import pytest

from scenarios.report.agreement import _told


def check(name, decisive, holds=True):
    return {"check": name, "left": 0.2, "right": 0.21, "holds": holds, "decisive": decisive}


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
    made = _told(rows)
    assert (made.holds, made.undecided) == (holds, undecided)
