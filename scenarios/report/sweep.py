"""The report of a folder of runs: what differs between them, and what each of them says."""

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import figure as drawing

from analysis.figures.style import BLUE, label, panels, percent
from models.errors import WscError
from scenarios.files.schema import AnyScenario
from scenarios.kinds import KINDS
from scenarios.report import commands
from scenarios.report.figures import drawn
from scenarios.report.page import Page
from scenarios.report.settings import again, file_of, flat
from scenarios.report.subject import composed
from scenarios.runs.execution import measure, reopen
from scenarios.runs.rundir import MANIFEST
from scenarios.views.numbers import plain, share
from scenarios.views.section import Figure, Section, Verdict, table
from scenarios.views.terminal import Progress

_MOST_SETTINGS = 6
_MOST_COMMANDS = 12
_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run: its settings by dotted path, and what it says by name; `problem` if nothing could be concluded."""

    kind: str
    name: str
    path: Path
    settings: Mapping[str, Any]
    numbers: Mapping[str, float]
    payload: object
    problem: str = ""
    scenario: AnyScenario | None = None


def runs_of(folder: Path) -> list[Path]:
    """Return the folders of runs in a folder, by name; hidden ones, which are unfinished, are left out."""
    return sorted(file.parent for file in folder.glob(f"*/{MANIFEST}") if not file.parent.name.startswith("."))


def report(folder: Path, progress: Progress) -> Page:
    """Return the report of a folder of runs.

    Parameters
    ----------
    folder : has the folders of runs
    progress : told the share of the runs that is measured
    """
    paths = runs_of(folder)
    every = []
    for i, path in enumerate(paths):
        progress("measuring runs", i / len(paths))
        every.append(_measured(path, folder))
    sections = [section for kind in KINDS for section in _sections([run for run in every if run.kind == kind])]
    failed = [(run.path.name, run.problem) for run in every if run.problem]
    if failed:
        sections.append(composed("Not concluded", tables=(table(("run", "why"), failed, words=2),)))
    payload = [run.payload for run in every]
    return Page(
        "a folder of runs", folder.resolve().name, f"{len(paths)} runs.", {"folder": str(folder)}, sections, payload
    )


def _measured(path: Path, folder: Path) -> RunLine:
    """Return what a run says, in one line of numbers."""
    try:
        scenario, run = reopen(path)
        settings = flat(run.manifest["resolved"])
        answer = measure(scenario, run, folder, lambda _what, _share: None)
    except WscError as error:
        return RunLine("", path.name, path, {}, {}, {}, str(error).splitlines()[0])
    numbers = dict(KINDS[scenario.kind].lens.numbers(answer))
    return RunLine(scenario.kind, scenario.name, path, settings, numbers, answer.payload(), "", scenario)


def _sections(runs: Sequence[RunLine]) -> Iterator[Section]:
    """Yield the table of runs of one kind, and curves over the setting that differs, if it is one number."""
    if not runs:
        return
    kind = runs[0].kind
    paths = _differing(runs)
    shown = paths if len(paths) <= _MOST_SETTINGS else []
    names = list(dict.fromkeys(name for run in runs for name in run.numbers))
    rows = [
        (
            run.name,
            *(plain(run.settings.get(path)) for path in shown),
            *(share(run.numbers.get(name)) for name in names),
        )
        for run in runs
    ]
    says = [f"{len(runs)} runs."]
    if len(paths) > len(shown):
        says.append(f"They differ in {len(paths)} settings, too many for a table; each run has a report of its own.")
    table_of_runs = table(("scenario", *shown, *names), rows)
    repeated, code = _again(runs, paths)
    says += ["Save the two files below beside each other first; they are worked out from the runs."] if code else []
    listed = (*repeated, *(f"wsc report {shlex.quote(str(run.path))}" for run in runs[:_MOST_COMMANDS]))
    verdicts = (Verdict(KINDS[kind].plural.capitalize(), _line(runs, names)),)
    yield composed(
        f"The {KINDS[kind].plural}",
        tuple(says),
        (table_of_runs,),
        tuple(_curves(runs, shown, names)),
        listed,
        verdicts,
        code=code,
    )


def _again(runs: Sequence[RunLine], paths: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the commands that make runs again, and the files of a sweep and its scenario where they are one."""
    scenarios = [run.scenario for run in runs if run.scenario is not None]
    values = [{path: run.settings.get(path) for path in paths} for run in runs]
    stem, file = commands.sweep([run.name for run in runs], values)
    if not stem:
        return tuple(dict.fromkeys(again(run)[0] for run in scenarios[:_MOST_COMMANDS])), ""
    out = str(runs[0].path.parent)
    command = f"wsc run {stem}.yaml" + ("" if out == "runs" else f" --out {shlex.quote(out)}")
    base = file_of(scenarios[0], f"{stem}_base")
    return (command,), f"# {stem}.yaml\n{file}\n# {stem}_base.yaml\n{base}"


def _differing(runs: Sequence[RunLine]) -> list[str]:
    """Return the settings, by dotted path, that are not the same in all runs; analyses, which decide no run, last."""
    paths = list(dict.fromkeys(path for run in runs for path in run.settings))
    every = {path: {json.dumps(run.settings.get(path)) for run in runs} for path in paths}
    return [path for path in paths if len(every[path]) > 1 and path not in {"name", "description"}]


def _curves(runs: Sequence[RunLine], paths: Sequence[str], names: Sequence[str]) -> Iterator[Figure]:
    """Yield what runs say over the one setting beside the seed that differs, if that is a number."""
    axes = [path for path in paths if path != "seed"]
    if len(axes) != 1 or len({plain(run.settings.get(axes[0])) for run in runs}) < 2:
        return
    at = [run.settings.get(axes[0]) for run in runs]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in at):
        return
    yield drawn(_drawn(runs, axes[0], names), f"What the runs say over {axes[0]}")


def _drawn(runs: Sequence[RunLine], path: str, names: Sequence[str]) -> drawing.Figure:
    """Draw each number over a setting, a panel for each."""
    columns = min(_COLUMNS, len(names))
    figure, axes = panels(columns, -(-len(names) // columns), height_inches=1.9)
    at = [float(run.settings[path]) for run in runs]
    for panel, name in zip(axes, names, strict=False):
        panel.plot(at, [run.numbers.get(name, math.nan) for run in runs], "o", ms=3, color=BLUE)
        label(panel, path, name)
        percent(panel)
    for panel in axes[len(names) :]:
        panel.set_visible(False)
    return figure


def _line(runs: Sequence[RunLine], names: Sequence[str]) -> str:
    """Return between what each number lies."""
    parts = []
    for name in names:
        known = [value for value in (run.numbers.get(name, math.nan) for run in runs) if math.isfinite(value)]
        if known:
            least, most = share(min(known)), share(max(known))
            parts.append(f"{name} {least}" if least == most else f"{name} {least} to {most}")
    return "; ".join(parts) or "nothing could be concluded"
