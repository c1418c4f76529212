"""When a change of a function is worth an alarm: what all detectors ask for."""

from models.errors import InputError


def check_criteria(false_alarms: float, min_factor: float, min_cost: float) -> None:
    """Refuse criteria that no change, or every change, would meet.

    Parameters
    ----------
    false_alarms : chance of a false alarm, 0..1
    min_factor : least factor
    min_cost : least cost, as a share of all events, 0..1

    Raises
    ------
    InputError
        With every fault.

    Examples
    --------
    >>> check_criteria(0.01, 0.5, 2.0)
    Traceback (most recent call last):
    models.errors.InputError: min_factor must be at least 1, got 0.5
    min_cost must be a share, 0 to 1, got 2
    """
    faults = []
    if not 0 < false_alarms < 1:
        faults.append(f"false_alarms must be between 0 and 1, got {false_alarms:g}")
    if not min_factor >= 1:
        faults.append(f"min_factor must be at least 1, got {min_factor:g}")
    if not 0 <= min_cost <= 1:
        faults.append(f"min_cost must be a share, 0 to 1, got {min_cost:g}")
    if faults:
        raise InputError("\n".join(faults))
