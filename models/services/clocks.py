"""Platforms at other clocks than those of their spec sheets, as firmware or an operating system sets them by hand."""

from collections.abc import Mapping
from dataclasses import replace

from models.platforms import Platform


def at_clocks(sheets: Mapping[str, Platform], clock_hz: Mapping[str, float]) -> Mapping[str, Platform]:
    """Return spec sheets of which some have another clock, at which they stay.

    Caches go with the clock, memory does not: latencies of caches stay what they are in cycles, that of memory what it
    is in seconds (Stewart et al. 2008, section 4.1.3). TDP and power stay as printed.

    Parameters
    ----------
    sheets : by name
    clock_hz : by name; of platforms without a sheet nothing comes

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> slow = at_clocks(PLATFORMS, {"pres": 1.1e9})
    >>> slow["pres"].base_frequency_hz / slow["piii"].base_frequency_hz
    1.0
    """
    if not clock_hz:
        return sheets
    return {name: _at(sheet, clock_hz[name]) if name in clock_hz else sheet for name, sheet in sheets.items()}


def _at(sheet: Platform, hz: float) -> Platform:
    return replace(sheet, base_frequency_hz=hz, min_frequency_hz=hz, max_frequency_hz=hz)
