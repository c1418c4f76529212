"""Opening a picture for whoever ran a command, with what the system has for it."""

import os
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
"""What is set where windows can be opened, other than on Windows and macOS."""


def opened(picture: Path) -> str:
    """Open a picture in what shows such files; return in words that it could not be, and where it is, or nothing.

    Parameters
    ----------
    picture : an existing file
    """
    if not has_display(os.environ, sys.platform):
        return f"there is no display to show it on; the picture is {picture}"
    if not webbrowser.open(picture.resolve().as_uri()):
        return f"nothing was found that shows pictures; the picture is {picture}"
    return ""


def has_display(environment: Mapping[str, str], platform: str) -> bool:
    """Return whether windows can be opened.

    Examples
    --------
    >>> has_display({}, "linux"), has_display({"DISPLAY": ":0"}, "linux"), has_display({}, "darwin")
    (False, True, True)
    """
    return platform in {"win32", "darwin"} or any(environment.get(name) for name in _DISPLAYS)
