"""Sections as HTML, every text escaped: in the page of a report, and in notebooks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2

from scenarios.views.section import Block, Section, Table, Verdict

TEMPLATES = Path(__file__).parent / "templates"
_NAME = 48
"""Characters of the longest name that stays on one line."""
_READABLE = 0.8
"""Of a figure's width: its letters are no smaller than this share of those of the page."""
_NOTEBOOK = (
    '{% import "section.html" as parts %}<div class="wsc">'
    "{% if title %}<h4>{{ title }}</h4>{% endif %}{{ parts.show(section, true) }}"
    "{% if verdicts %}{{ parts.verdicts(verdicts) }}{% endif %}</div>"
)


@dataclass(frozen=True, slots=True)
class _Named:
    """A block and what kind it is of, for templates."""

    kind: str
    of: Block


def section(shown: Section) -> str:
    """Return a section as HTML without a page around it."""
    template = environment(TEMPLATES).from_string(_NOTEBOOK)
    return template.render(title=shown.title, section=shown, verdicts=shown.of(Verdict))


@cache
def environment(*folders: Path) -> jinja2.Environment:
    """Return templates of some folders, with what those of sections need.

    Examples
    --------
    >>> sorted(environment(TEMPLATES).filters.keys() & {"runs", "parts", "long"})
    ['long', 'parts', 'runs']
    """
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader([TEMPLATES, *folders]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = templates.filters
    filters |= {"runs": _runs, "parts": _parts, "long": _long}
    functions: dict[str, Any] = templates.globals
    functions["least"] = _least
    return templates


def _runs(blocks: Sequence[Block]) -> list[list[_Named]]:
    """Return blocks that follow each other and are of one kind together."""
    named = [_Named(type(block).__name__, block) for block in blocks]
    return [list(run) for _, run in groupby(named, key=lambda block: block.kind)]


def _least(width_rem: float) -> float:
    """Return how wide a figure stays on narrow screens, where it can be moved sideways."""
    return round(width_rem * _READABLE, 2)


def _parts(text: str) -> list[str]:
    """Return a heading in parts between which it may be broken: after dots and underscores of dotted paths."""
    return re.split(r"(?<=[._])", text)


def _long(table: Table) -> list[bool]:
    """Return which columns hold sentences, which take several lines, and not names, which should stay on one."""
    return [any(len(cell.text) > _NAME for cell in column) for column in zip(*table.rows, strict=True)]
