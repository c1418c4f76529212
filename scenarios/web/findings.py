"""Pages about what the profile says over time and to common questions: roll-outs, stability, documented questions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from analysis.profiling.query import DIMENSIONS, QueryError, is_label, unknown
from analysis.profiling.questions.catalogue import QUESTIONS
from analysis.profiling.questions.question import Question, Value
from analysis.profiling.stability import periods
from analysis.statistics import NotEnoughDataError
from scenarios.profiling.stability import by_day
from scenarios.views.section import Table
from scenarios.views.tables import Link, Row, of_frame
from scenarios.web.charts import Chart, Lines, lines, stacked
from scenarios.web.parameters import MOST_ROWS, PageQuery, Pairs, RefusedError, gather, read
from scenarios.web.site import ProfileSite, WebPage
from scenarios.web.timeline import day_text

_NAMES = {
    "previous": "distance",
    "previous_expected": "expected of sampling alone",
    "mean": "distance",
    "mean_expected": "expected of sampling alone",
    "entropy": "entropy",
}
PATH = "question in the path"
"""Name under which the name of a question arrives; no URL can say it as a parameter of its own."""
_ROLLED_OUT = ("compiler", "kernel", "platform", "revision")
_MOST_VERSIONS = 30
"""Labels of more values are no versions."""


@dataclass(frozen=True, slots=True)
class RolloutsView:
    """What the page of roll-outs shows."""

    request: PageQuery
    suggestions: list[str]
    charts: list[tuple[str, Chart, Table]]
    unknown: list[str]
    """Of what no sample says anything."""
    many: list[str]
    """Labels of too many values."""
    action: str = "/rollouts"


@dataclass(frozen=True, slots=True)
class StabilityView:
    """What the page of stability shows."""

    request: PageQuery
    suggestions: list[str]
    charts: list[tuple[str, Lines]]
    table: Table
    action: str = "/stability"


@dataclass(frozen=True, slots=True)
class QuestionsView:
    """What the list of questions shows."""

    questions: Mapping[str, Question]


@dataclass(frozen=True, slots=True)
class QuestionView:
    """What the page of one question shows."""

    question: Question
    values: Mapping[str, Value]
    problems: list[str]
    answer: Table | None
    nothing: str
    """What an answer without rows says; empty if it has some, or was not asked."""


def rollouts(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return which compilers, kernels, platforms, revisions and labels took which share of an event, day by day."""
    request = read(pairs, site.default(("day",)))
    charts, absent, text = [], list[str](), partial(day_text, origin_s=site.database.origin_s)
    labels = {name: count for name, count in site.counts.items() if is_label(name)}
    many = [name for name, count in labels.items() if count > _MOST_VERSIONS]
    for key in (*_ROLLED_OUT, *(name for name in labels if name not in many)):
        shares = site.database.query(request.grouped("day", key).query)
        rows = [
            (int(day), str(name), int(value))
            for day, name, value in zip(shares["day"], shares[key], shares["value"], strict=True)
        ]
        if not any(name for _, name, _ in rows):
            absent.append(key)
            continue
        listed = of_frame(_by_day(rows, key, request.top), f"{_titled(key)}: share by day", bar="")
        first, *rest = listed.headings
        days = sorted({day for day, _, _ in rows})
        heads = first, *(replace(head, text=text(day)) for head, day in zip(rest, days, strict=True))
        charts.append((_titled(key), stacked(rows, text=text), replace(listed, headings=heads)))
    return WebPage("rollouts.html", "Roll-outs", RolloutsView(request, site.suggestions, charts, absent, many))


def _titled(key: str) -> str:
    """Return a dimension as a heading; a label as it is written."""
    return key if is_label(key) else key.capitalize()


def _by_day(rows: list[tuple[int, str, int]], key: str, top: int) -> pd.DataFrame:
    """Return shares with a row for each name, largest first, and a column for each day."""
    days = sorted({day for day, _, _ in rows})
    whole = {day: sum(value for of, _, value in rows if of == day) for day in days}
    total = dict[str, int]()
    for _, name, value in rows:
        total[name] = total.get(name, 0) + value
    cells = {(day, name): value / whole[day] for day, name, value in rows if whole[day]}
    names = sorted(total, key=lambda name: (-total[name], name))[:top]
    shares = {f"share_day_{day}": [cells.get((day, name), 0.0) for name in names] for day in days}
    return pd.DataFrame({key: names, **shares})


def stability(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return entropy and distances of the profile day by day, beside what sampling alone makes of them."""
    request = read(pairs, site.default(("application",)), more=("k",))
    if {"day", "date", "visit"} & {*request.query.by}:
        raise RefusedError(["by: days are compared and visits were drawn, so none of them can be a key"])
    clustered = by_day(site.database, request.grouped(*request.query.by, "day").query, "visit")
    periods_of = periods(clustered, k=_entries(request.more.get("k")))
    days, text = [int(day) for day in periods_of["day"]], partial(day_text, origin_s=site.database.origin_s)
    drawn = [
        ("Distance to the day before", ("previous", "previous_expected")),
        ("Distance to the mean of all days", ("mean", "mean_expected")),
        ("Entropy (nats)", ("entropy",)),
    ]
    named = periods_of.assign(day=[text(day).removeprefix("day ") for day in days])
    view = StabilityView(
        request=request,
        suggestions=site.suggestions,
        charts=[
            (title, lines(days, {_NAMES[name]: [float(value) for value in periods_of[name]] for name in names}, text))
            for title, names in drawn
        ],
        table=of_frame(named, f"{request.query.event} by {', '.join(request.query.by)}, day by day", bar=""),
    )
    return WebPage("stability.html", "Stability", view)


def _entries(text: str | None) -> int | None:
    if text is None:
        return 20
    if text.isascii() and text.isdigit() and int(text[:9]) >= 1 and len(text) <= 9:
        return int(text)
    raise RefusedError([f"k: should be a whole number above 0, got {text[:60]}"])


def questions(_: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the list of documented questions."""
    problems = list[str]()
    gather(pairs, (), problems)
    if problems:
        raise RefusedError(problems)
    return WebPage("questions.html", "Questions", QuestionsView(QUESTIONS))


def question(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the answer to one documented question, with a form for its parameters."""
    pairs = list(pairs)
    name = next((value for key, value in reversed(pairs) if key == PATH), "")
    if name not in QUESTIONS:
        raise RefusedError([unknown("question", name, list(QUESTIONS))], 404)
    wanted = QUESTIONS[name]
    problems = list[str]()
    texts = gather([pair for pair in pairs if pair[0] != PATH], wanted.parameters, problems)
    given = {key: values[0] for key, values in texts.items()}
    problems += [f"{key}: is given {len(values)} times" for key, values in texts.items() if len(values) > 1]
    if not 1 <= _whole(given.get("top", "1")) <= MOST_ROWS:
        problems.append(f"top: should be a whole number from 1 to {MOST_ROWS}, got {given['top'][:60]}")
    answer: Table | None = None
    if not problems:
        try:
            answer = _answer(wanted.ask(site.database, **given), wanted.title, PageQuery(site.default()))
        except (QueryError, NotEnoughDataError) as error:
            problems = str(error).splitlines()
    nothing = wanted.nothing if answer is not None and not answer.rows else ""
    view = QuestionView(wanted, {**wanted.defaults(site.database), **given}, problems, answer, nothing)
    return WebPage("question.html", wanted.title, view, 400 if problems and len(pairs) > 1 else 200)


def _answer(answer: pd.DataFrame, title: str, fleet: PageQuery) -> Table:
    """Return an answer as a table whose names lead to their queries."""

    def linked(column: str, key: str) -> Link:
        def link(row: Row) -> str:
            value = row[column]
            return fleet.only(key, value).url("/query") if isinstance(value, str) else ""

        return link

    keys = {"caller": "function", "largest_in": "application"}
    links = {str(name): linked(str(name), keys.get(str(name), str(name))) for name in answer.columns}
    known = {name: link for name, link in links.items() if keys.get(name, name) in DIMENSIONS}
    return of_frame(answer.head(MOST_ROWS), title, known)


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
