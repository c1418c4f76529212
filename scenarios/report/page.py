"""A report as one page of HTML that needs nothing but itself, written whole or not at all."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jinja2

from scenarios.files.faults import Fault, FaultsError
from scenarios.report.section import Section, Table
from scenarios.runs.rundir import make_folder
from scenarios.runs.unfinished import whole

HERE = Path(__file__).parent
_SHARED = HERE.parent / "web" / "static" / "style.css"
_MARK = '<meta name="generator" content="wsc report">'
_HEAD_BYTES = 1000
_NAME = 48
"""Characters of the longest name that stays on one line."""
_READABLE = 0.8
"""Of a figure's width: its letters are no smaller than this share of those of the page."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a report says: its title and a line below it, facts with their labels, and its sections."""

    kind: str
    title: str
    about: str
    facts: Mapping[str, str]
    sections: Sequence[Section]
    whole: Any = None
    """What the command of the folder prints as JSON, where sections have no payloads of their own."""

    def payload(self, file: Path) -> dict[str, Any]:
        """Return what `wsc report --json` prints."""
        verdicts = [one for section in self.sections for one in section.verdicts]
        return {
            "kind": "report",
            "of": self.kind,
            "title": self.title,
            "file": str(file),
            "verdicts": [asdict(one) for one in verdicts],
            "payload": self.whole,
            "sections": [
                {"title": section.title, "says": list(section.says), "payload": section.payload}
                for section in self.sections
            ],
        }


def rendered(page: Page) -> str:
    """Return a page as HTML; every text is escaped.

    Examples
    --------
    >>> text = rendered(Page("fleet", "<b>", "", {}, [Section("day & night", ("1 < 2",))]))
    >>> "<b>" in text, "&lt;b&gt;" in text, "1 &lt; 2" in text
    (False, True, True)
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"parts": _parts, "long": _long}
    style = _SHARED.read_text(encoding="utf-8") + (HERE / "templates" / "report.css").read_text(encoding="utf-8")
    return environment.get_template("report.html").render(page=page, style=style, mark=_MARK, least=_least)


def _least(width_rem: float) -> float:
    """Return how wide a figure stays on narrow screens, where it can be moved sideways."""
    return round(width_rem * _READABLE, 2)


def _parts(text: str) -> list[str]:
    """Return a heading in parts between which it may be broken: after dots and underscores of dotted paths."""
    return re.split(r"(?<=[._])", text)


def _long(table: Table) -> list[bool]:
    """Return which columns hold sentences, which take several lines, and not names, which should stay on one."""
    return [any(len(cell.text) > _NAME for cell in column) for column in zip(*table.rows, strict=True)]


def write(page: Page, file: Path) -> None:
    """Write a page, all of it or nothing, in the place of a former report.

    Parameters
    ----------
    page : what the report says
    file : where; its folder is made if need be

    Raises
    ------
    FaultsError
        If something other than a report is there.
    FolderError
        If its folder cannot be made.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Page("fleet", "small", "", {}, []), Path(folder, "report.html"))
    ...     [file.name for file in Path(folder).iterdir()]
    ['report.html']
    """
    refuse(file)
    make_folder(file.parent)
    with whole(file) as partial:
        partial.write_text(rendered(page), encoding="utf-8")


def refuse(file: Path) -> None:
    """Refuse a place where something other than a report is.

    Raises
    ------
    FaultsError
        If there is.

    Examples
    --------
    >>> refuse(Path("/dev/null"))
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: /dev/null: is there and is no report; give another --out
    """
    if not file.exists():
        return
    ours = False
    if file.is_file():
        with file.open("rb") as content:
            ours = _MARK.encode() in content.read(_HEAD_BYTES)
    if not ours:
        raise FaultsError([Fault(str(file), 0, 0, "", "is there and is no report; give another --out")])
