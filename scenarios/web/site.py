"""What all pages of one profile share: its database, its facts, what can be asked, and the templates."""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Protocol, TypeVar, cast

import jinja2
import pandas as pd
import pyarrow.parquet as pq

from analysis.profiling.changes.detection import WatchCriteria
from analysis.profiling.changes.reading import WatchSpan
from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.query import DIMENSIONS, LABEL, Query
from analysis.profiling.regressions.comparison import AlarmCriteria
from analysis.profiling.regressions.reading import CostReader
from analysis.profiling.storage import Identity
from analysis.statistics import NotEnoughDataError
from scenarios.profiling.intervals import ERRORS, ChangedShares, difference, intervals, without
from scenarios.profiling.regress import Regression, compare
from scenarios.profiling.watch import ProfileWatch, watch_database
from scenarios.runs.disk import JsonError, json_of
from scenarios.runs.rundir import RunError
from scenarios.views.conclusion import Payload
from scenarios.views.section import Table
from scenarios.web.background import BackgroundAnswers
from scenarios.web.parameters import MOST_ROWS, RefusedError

_T = TypeVar("_T")
HERE = Path(__file__).parent
_SUGGESTED = ("application", "compiler", "datacentre", "kernel", "platform", "collection")
_SUGGESTIONS = 200
_MOST_ANSWERS = 64
_MOST_KEPT = 8
"""Conclusions of `watch` that are kept in the profile's folder."""
_FIRST = {"cycles": 0, "instructions": 1}


MOST_BYTES = 1 << 20
"""About how much of a table a page or a JSON answer has, at most."""
_CELL_BYTES = 90
"""What a cell takes besides its texts."""


class View(Protocol):
    """What a page's template shows: a dataclass, whichever."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@dataclass(frozen=True, slots=True)
class WebPage:
    """A template and the view, a dataclass of its own, whose fields it shows."""

    template: str
    title: str
    view: View
    status: int = 200


@dataclass(frozen=True, slots=True)
class WatchQuestion:
    """What of a profile is watched, and when a change is worth an alarm."""

    event: str
    criteria: WatchCriteria = field(default_factory=WatchCriteria)
    span: WatchSpan = field(default_factory=WatchSpan)


def _shortened(value: object) -> object:
    """Return a table of a view without the rows that would make the page too large, and how many these are."""
    if not isinstance(value, Table):
        return value
    sizes = (sum(_CELL_BYTES + len(cell.text) + len(cell.full) + len(cell.href) for cell in row) for row in value.rows)
    fitting = sum(total <= MOST_BYTES for total in itertools.accumulate(sizes))
    left = len(value.rows) - fitting
    if not left:
        return value
    caption = f"{left:,} more rows are left out, as a page shows at most {MOST_BYTES >> 20} MB of a table; restrict it."
    return replace(value, rows=value.rows[:fitting], caption=caption)


class ProfileSite:
    """One profile, opened read-only; safe to ask from several threads.

    Raises
    ------
    ProfileError
        If the folder is no profile.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self.database = Database([run])
        self._answers = OrderedDict[tuple[object, Identity], object]()
        self._lock = Lock()
        self._background = BackgroundAnswers()
        self.templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def close(self) -> None:
        """Close the database, after what is worked out in the background."""
        self._background.close()
        self.database.close()

    def render(self, page: WebPage) -> str:
        """Return a page as HTML."""
        shared: dict[str, object] = {
            "title": page.title,
            "name": self.name,
            "events": self.events,
            "dimensions": self.dimensions,
        }
        shared |= {"template": page.template, "counts": lambda: self.counts}
        own = {field.name: _shortened(getattr(page.view, field.name)) for field in fields(page.view)}
        return self.templates.get_template(page.template).render(**shared, **own)

    @cached_property
    def dimensions(self) -> dict[str, str]:
        """Every dimension and what it means, labels of the files' own last."""
        return DIMENSIONS | {f"{LABEL}{name}": f"the files' label {name}" for name in self.database.labels()}

    @property
    def counts(self) -> Mapping[str, int]:
        """How many values every dimension has, at most `MOST_ROWS`."""
        return self.once(
            "counts", lambda: {name: len(self.database.values(name, MOST_ROWS)) for name in self.dimensions}
        )

    @property
    def name(self) -> str:
        """Name of the folder, which names the run."""
        return self.run.resolve().name

    @cached_property
    def events(self) -> list[str]:
        """Events that were sampled, cycles and instructions first."""
        return sorted(self.database.events(), key=lambda event: (_FIRST.get(event, len(_FIRST)), event))

    @cached_property
    def stack_events(self) -> list[str]:
        """Events that were sampled with stacks."""
        sampled = set(self.database.with_stacks())
        return [event for event in self.events if event in sampled]

    @cached_property
    def suggestions(self) -> list[str]:
        """Restrictions that a form suggests, as ``dimension=value``."""
        return [f"{key}={value}" for key in _SUGGESTED for value in self.database.values(key, _SUGGESTIONS)]

    @cached_property
    def scenario(self) -> Payload:
        """What the run's manifest says of it; empty for a plain folder."""
        file = self.run / "manifest.json"
        if not file.is_file():
            return {}
        try:
            manifest = json_of(file)
        except (OSError, JsonError):
            return {}
        if not isinstance(manifest, dict):
            return {}
        return {key: manifest[key] for key in ("kind", "seed", "scenario") if key in manifest}

    def default(self, by: tuple[str, ...] = ("function",), stacks: bool = False) -> Query:
        """Return the query that a page begins with: cycles if sampled, of the collection that stands for the fleet.

        Parameters
        ----------
        by : its keys
        stacks : whether the event needs to have been sampled with stacks
        """
        events = self.stack_events if stacks else self.events
        return of_fleet(self.database, events[0] if events else "cycles", by)

    def intervals(self, query: Query) -> pd.DataFrame | None:
        """Return the 95% intervals of a query's shares over visits: its keys, low, high; None without any.

        Parameters
        ----------
        query : what is asked
        """
        return self.once(query, lambda: self._share_intervals(query))

    def without(self, query: Query) -> str:
        """Return in a line why a query's shares have no intervals; nothing if they have."""
        return without(self.database, query) if self.intervals(query) is None else ""

    def difference(self, a: Query, b: Query) -> ChangedShares:
        """Return the changes from one query to another, with intervals and significance; or why they have none.

        Parameters
        ----------
        a, b : of one event, by the same dimensions
        """
        return self.once(("difference", a, b), lambda: difference(self.database, a, self.database, b))

    def regression(self, at_s: float, event: str, criteria: AlarmCriteria) -> Regression:
        """Return the functions that became more expensive from before a time to after it, and what could be found.

        Parameters
        ----------
        at_s : visits before that time are set beside those from then on
        event : of `events`
        criteria : when a change is worth an alarm

        Raises
        ------
        RefusedError
            If there are no samples of the event on a side, or of one machine alone.
        """
        return self.once(("regression", at_s, event, criteria), lambda: self._regression(at_s, event, criteria))

    def watch(self, question: WatchQuestion, *, begin: bool = True) -> ProfileWatch | None:
        """Return what changed over time; None while that is being worked out in the background.

        It is kept in the profile's folder, if that can be written to, for whoever asks the same again.

        Parameters
        ----------
        question : what is watched
        begin : whether it is worked out if it is not known; otherwise only what is known is returned

        Raises
        ------
        WscError
            Why it could not be answered; BusyError if too many such questions wait.
        """
        key = (question, self.database.identity)
        answer = self._background.known(key)
        if answer is None:
            from scenarios.runs.conclusions import kept_record, record_file

            state = tuple((Path(file).name, size, changed_ns) for file, size, changed_ns in self.database.identity)
            file = self.once(("file", key), lambda: record_file(self.run, "watch", (question, state)))
            answer = kept_record(file, ProfileWatch)
            if answer is None and begin:
                self._background.begin(key, lambda: self._watch(question, file))
        return cast("ProfileWatch | None", answer)

    def _watch(self, question: WatchQuestion, file: Path) -> ProfileWatch:
        """Work out what changed, and keep it."""
        from scenarios.runs.conclusions import keep_record

        answer = watch_database(self.database, question.event, question.criteria, question.span)
        with suppress(OSError, RunError):
            keep_record(answer, file)
            others = sorted(file.parent.glob("watch-*.json"), key=lambda other: other.stat().st_mtime_ns)
            for old in others[:-_MOST_KEPT]:
                old.unlink(missing_ok=True)
        return answer

    def _share_intervals(self, query: Query) -> pd.DataFrame | None:
        shares = intervals(self.database, query)
        return None if shares is None else shares.drop(columns=ERRORS).head(MOST_ROWS)

    def _regression(self, at_s: float, event: str, criteria: AlarmCriteria) -> Regression:
        reader = CostReader()
        sides = {
            "before": reader.add(self.database, event, (None, at_s), later=False),
            "after": reader.add(self.database, event, (at_s, None), later=True),
        }
        if empty := [side for side, read in sides.items() if not read.samples]:
            raise RefusedError([f"at: the event {event} has no samples {side} that time" for side in empty])
        try:
            return compare(event, list(sides.values()), reader.comparison(), criteria)
        except NotEnoughDataError as error:
            raise RefusedError([f"at: {error}"]) from None

    def once(self, question: object, make: Callable[[], _T]) -> _T:
        """Return what is made of the profile as it is now, kept for when the same is asked again.

        Parameters
        ----------
        question : what is asked, hashable
        make : works it out
        """
        key = (question, self.database.identity)
        with self._lock:
            if key in self._answers:
                return cast("_T", self._answers[key])
        answer = make()
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > _MOST_ANSWERS:
                self._answers.popitem(last=False)
        return answer

    @property
    def places(self) -> Mapping[str, tuple[str, str, int]]:
        """Image, file and first line of each function's name; one that is in several images says so and has no file."""
        return self.once("places", self._places)

    def _places(self) -> Mapping[str, tuple[str, str, int]]:
        columns = (self.database.places()[name].tolist() for name in ("function", "images", "image", "file", "line"))
        return {
            name: (image, file, line) if images == 1 else ("several images", "", 0)
            for name, images, image, file, line in zip(*columns, strict=True)
        }

    def source(self, file: str, file_hash: str, *, required: bool = True) -> pd.DataFrame:
        """Return the lines of a source file in order: line, text; by its name and its content's signature.

        Parameters
        ----------
        file, file_hash : compared with what the table of sources has; never a path
        required : whether there must be such a source; otherwise it has no lines

        Raises
        ------
        RefusedError
            If the profile has no such source, and it is required.
        """
        stored = self.run / "sources.parquet"
        if stored.is_file():
            wanted = [("file", "=", file), ("file_hash", "=", file_hash)]
            lines: pd.DataFrame = pq.read_table(stored, columns=["line", "text"], filters=wanted).to_pandas()
            if len(lines):
                return lines.sort_values("line", ignore_index=True)
        if not required:
            return pd.DataFrame({"line": pd.Series(dtype=int), "text": pd.Series(dtype=str)})
        raise RefusedError([f"file: no source of {file[:120]} with signature {file_hash[:80]} is stored"], 404)
