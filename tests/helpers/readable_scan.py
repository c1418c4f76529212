"""The scan of series of counts, window by window and hour by hour, in plain Python: slow, and meant to be read."""

import math


def window(counts, expected, end, length, period, *, reach=0):
    """Return the signed root of the deviance of one window and the logarithm of its factor; None: nothing to compare.

    The window is the bins from `end` − `length` up to `end`, of one series. Each of its hours is compared with the same
    hour of all periods before the window began, or of the `reach` bins before it. Given what both have together, the
    window's part is binomial.
    """
    start = end - length
    first = max(start - reach, 0) if reach else 0
    together, seen, mean = 0.0, 0.0, 0.0
    for hour in sorted({at % period for at in range(max(start, 0), end)}):
        inside = [at for at in range(max(start, 0), end) if at % period == hour]
        before = [at for at in range(first, max(start, 0)) if at % period == hour]
        exposed = sum(expected[at] for at in before)
        if exposed <= 0:
            continue
        here = sum(expected[at] for at in inside)
        both = sum(counts[at] for at in (*inside, *before))
        together += both
        seen += sum(counts[at] for at in inside)
        mean += both * here / (here + exposed)
    if mean <= 1e-9 or together - mean <= 1e-9:
        return None
    deviance = 2 * (_part(seen, mean) + _part(together - seen, together - mean))
    factor = math.log((seen + 0.5) / (together - seen + 0.5)) - math.log((mean + 0.5) / (together - mean + 0.5))
    return math.copysign(math.sqrt(max(deviance, 0.0)), seen - mean), factor


def _part(count, mean):
    return count * math.log(count / mean) if count > 0 else 0.0


def machine_parts(exposure, end, length, day, period, *, reach=0):
    """Return the spread of machine-days in one window and before it, and what lasts of it, as `Geometry` has them."""
    start, bins = max(end - length, 0), len(exposure[0])
    within = list(range(start, end))
    first = max(start - reach, 0) if reach else 0
    before = [at for at in range(first, start) if length >= period or (end - 1 - at) % period < length]

    def squares(chosen):
        """Σ over machine-days; within a period, the hours of each period before count as a window of their own."""
        groups = {}
        for row, machine in enumerate(exposure):
            for at in chosen:
                key = (row, at // day, (end - 1 - at) // period if length < period else 0)
                groups[key] = groups.get(key, 0.0) + machine[at]
        return sum(value**2 for value in groups.values())

    total = sum(map(sum, exposure))
    usual = (
        sum(
            sum(machine[at] for at in range(first, min(first + day, bins))) ** 2
            for machine in exposure
            for first in range(0, bins, day)
        )
        / total
    )
    here, there = (sum(machine[at] for machine in exposure for at in chosen) for chosen in (within, before))
    part = here / (here + there)
    daily = (1 - part) ** 2 * squares(within) + part**2 * squares(before)
    both = sum(
        ((1 - part) * sum(machine[at] for at in within) - part * sum(machine[at] for at in before)) ** 2
        for machine in exposure
    )
    return squares(within) / (here * usual), squares(before) / (there * usual), both / daily
