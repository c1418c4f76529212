"""A report as one page of HTML that needs nothing but itself, written whole or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from scenarios.files.faults import Fault, FaultsError
from scenarios.runs.disk import whole
from scenarios.runs.rundir import make_folder
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.html import environment
from scenarios.views.section import Place, Says, Section, Verdict

HERE = Path(__file__).parent
_SHARED = HERE.parent / "web" / "static" / "style.css"
_MARK = '<meta name="generator" content="wsc report">'
_HEAD_BYTES = 1000


@dataclass(frozen=True, slots=True, repr=False)
class Page(Conclusion):
    """What a report says: its title and a line below it, facts with their labels, and its sections."""

    kind: str
    title: str
    about: str
    facts: Mapping[str, str]
    sections: Sequence[Section]
    whole: object = None
    """What the command of the folder prints as JSON, where sections have no payloads of their own."""
    file: Path | None = None
    """Where the page was written."""

    @property
    def verdicts(self) -> list[Verdict]:
        """What all sections conclude, in order."""
        return [verdict for section in self.sections for verdict in section.of(Verdict)]

    def section(self) -> Section:
        """Return the verdicts, and where the page is."""
        return Section("", (*self.verdicts, Place(f"report: {self.file}")), self.payload())

    def payload(self) -> Payload:
        """Return kind, of, title, file, verdicts (lens, says, holds) and sections (title, says, payload)."""
        return {
            "kind": "report",
            "of": self.kind,
            "title": self.title,
            "file": str(self.file),
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "payload": self.whole,
            "sections": [
                {
                    "title": section.title,
                    "says": [line.text for line in section.of(Says)],
                    "payload": section.answer,
                }
                for section in self.sections
            ],
        }

    def frame(self) -> pd.DataFrame:
        """Return the verdicts: lens, says, holds, undecided."""
        return pd.DataFrame(
            [asdict(verdict) for verdict in self.verdicts], columns=["lens", "says", "holds", "undecided"]
        )


def rendered(page: Page) -> str:
    """Return a page as HTML; every text is escaped."""
    style = _SHARED.read_text(encoding="utf-8") + (HERE / "templates" / "report.css").read_text(encoding="utf-8")
    return environment(HERE / "templates").get_template("report.html").render(page=page, style=style, mark=_MARK)


def write(page: Page, file: Path) -> Page:
    """Write a page, all of it or nothing, in the place of a former report; return it with its place.

    Parameters
    ----------
    page : what the report says
    file : where; its folder is made if need be
    """
    refuse(file)
    make_folder(file.parent)
    with whole(file) as partial:
        partial.write_text(rendered(page), encoding="utf-8")
    return replace(page, file=file)


def refuse(file: Path) -> None:
    """Refuse a place where something other than a report is."""
    if not file.exists():
        return
    ours = False
    if file.is_file():
        with file.open("rb") as content:
            ours = _MARK.encode() in content.read(_HEAD_BYTES)
    if not ours:
        raise FaultsError([Fault(str(file), 0, 0, "", "is there and is no report; give another --out")])
