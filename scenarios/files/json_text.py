"""JSON files that somebody may have changed: read as what they hold, or refused."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from models.errors import WscError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON holds."""


class JsonError(WscError):
    """A file is no JSON that can be read."""


def json_of(file: Path, object_hook: Callable[[dict[str, Json]], object] | None = None) -> object:
    """Return what a JSON file holds.

    Raises
    ------
    JsonError
        If it is no UTF-8 text, no JSON, nested too deeply, or has a number of thousands of digits.
    OSError
        If it cannot be opened.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"), object_hook=object_hook)
    except RecursionError:
        raise JsonError("is nested too deeply") from None
    except ValueError as error:
        raise JsonError(str(error)) from error
