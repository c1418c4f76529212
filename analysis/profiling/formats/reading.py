"""Profiles of any format that is known: the content tells which it is."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis.profiling.formats.cpu_profile import is_cpu_profile, read_cpu_profile
from analysis.profiling.formats.folded import is_folded, is_nearly_folded, read_folded
from analysis.profiling.formats.foreign import ForeignProfile
from analysis.profiling.formats.perf_script import is_perf_script, read_perf_script
from analysis.profiling.formats.pprof import read_pprof
from analysis.profiling.formats.tables import to_tables, uncounted
from analysis.tables.bytes import content_of
from analysis.tables.faults import FileError, refusal
from models.errors import InputError

_HEAD_BYTES = 1 << 16
_FIRST_LINES = 50
_LEGACY = (
    re.compile(r"heap profile: *\d+: *\d+ *\[ *\d+: *\d+ *\] *@ *(?P<kind>growth|fragmentation|heap)"),
    re.compile(r"--- (?P<kind>heap|growth|fragmentation|contention|thread)z \d+ ---"),
    re.compile(r"--- (?P<kind>contention|mutex):"),
    re.compile(r"--- (?P<kind>Thread) [0-9a-fA-F]+ \(name: "),
    re.compile(r"(?P<kind>\w+) profile: total \d+$"),
)
"""First lines of the text formats that pprof had before profile.proto: of gperftools, Go with debug=1, and Java."""
_TEXT = frozenset((9, 10, 12, 13, 27)) | frozenset(range(32, 256))


def read_foreign(path: Path) -> ForeignProfile:
    """Read a profile of another tool: pprof, gperftools' CPU profile, `perf script` or folded stacks, perhaps gzipped.

    Parameters
    ----------
    path : the file; its content tells the format, its name does not

    Raises
    ------
    FileError
        With every fault of the file; if it is empty, damaged, larger than 512 MiB unpacked, one of pprof's legacy text
        formats or of no format known.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("main;read 12\\n")
    ...     read_foreign(Path(file.name)).total("samples")
    12
    """
    data, name = content_of(path), str(path)
    if is_cpu_profile(data):
        return read_cpu_profile(data, name)
    head = data[:_HEAD_BYTES]
    if not set(head) <= _TEXT:
        return _binary(data, name)
    lines = head.decode(errors="replace").splitlines()[:_FIRST_LINES]
    _refuse_legacy(lines, name)
    if is_perf_script(lines):
        return read_perf_script(data, name)
    if any(is_folded(line) or is_nearly_folded(line) for line in lines):
        return read_folded(data, name)
    known = "pprof, folded stacks, perf script or a CPU profile of gperftools"
    raise refusal(name, "file", f"should be a profile: {known}", next((line for line in lines if line.strip()), ""))


def read_profile(*paths: Path) -> dict[str, pd.DataFrame]:
    """Read profiles of other tools as the tables of a profile directory.

    Parameters
    ----------
    paths : files
    """
    return to_tables(read_all(paths))


def read_all(paths: Sequence[Path]) -> list[ForeignProfile]:
    """Read several profiles; the faults of all files are said at once.

    Raises
    ------
    ValueError
        With every fault of every file, a line each.
    OSError
        If one cannot be read.

    Examples
    --------
    >>> read_all([])
    []
    """
    profiles, faults = [], []
    for path in paths:
        try:
            profiles.append(read_foreign(path))
        except FileError as error:
            faults.append(error)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise InputError("\n".join(map(str, faults)))
    return profiles


def without_copies(profiles: Sequence[ForeignProfile]) -> tuple[list[ForeignProfile], list[str]]:
    """Return profiles without those that hold the very samples of an earlier one, begun at the same time, and notes.

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import Frame, Measure, Sample
    >>> profile = ForeignProfile((Measure("cpu"),), (Frame("f"),), (Sample((0,), (60,)),), name="a.pb")
    >>> kept, notes = without_copies([profile, profile])
    >>> len(kept), notes
    (1, ['a.pb: left out: holds the very samples of a.pb'])
    """
    first: dict[object, str] = {}
    kept, notes = [], []
    for profile in profiles:
        start_s = None if math.isnan(profile.start_s) else profile.start_s
        content = (start_s, profile.measures, profile.frames, profile.samples, profile.origins)
        if profile.samples and content in first:
            notes.append(f"{profile.name}: left out: holds the very samples of {first[content]}")
            continue
        first[content] = profile.name
        kept.append(profile)
    return kept, notes


def notes_on(profiles: Sequence[ForeignProfile]) -> list[str]:
    """Return what a reader should know about how files were understood, each note once with the files it is about.

    Examples
    --------
    >>> notes_on([ForeignProfile((), name=name, notes=("no times",)) for name in ("a.pb", "b.pb", "c.pb")])
    ['a.pb and 2 more files: no times']
    """
    files: dict[str, list[str]] = {}
    for profile in profiles:
        for note in (*profile.notes, *_amounts(profile)):
            files.setdefault(note, []).append(profile.name)
    return [f"{_names(names)}: {note}" for note, names in files.items()]


def _names(names: Sequence[str]) -> str:
    more = len(names) - 1
    return names[0] + (f" and {more:,} more file{'s' * (more > 1)}" if more else "")


def _amounts(profile: ForeignProfile) -> list[str]:
    """Return a note on the events whose samples the file does not count."""
    events = uncounted(profile)
    return [f"{', '.join(events)}: amounts without a count of samples: each record counts as one"] if events else []


def _refuse_legacy(lines: Sequence[str], name: str) -> None:
    """Refuse the text formats of old profiles by name, with the command that converts them."""
    first = next((line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    kind = next((match["kind"].lower() for pattern in _LEGACY if (match := pattern.match(first))), "")
    if kind:
        advice = "not supported; convert with `go tool pprof -proto FILE > FILE.pb.gz`"
        raise refusal(name, "file", f"is a legacy {kind} profile: {advice}", first)


def _binary(data: bytes, name: str) -> ForeignProfile:
    """Read what is not text: pprof's format, or nothing that is known."""
    try:
        return read_pprof(data, name)
    except FileError as error:
        if all(fault.field in {"profile", "number"} for fault in error.faults):
            known = "should be a profile of a known format; as pprof's, "
            first = error.faults[0]
            raise refusal(name, "file", known + first.problem, first.got, byte=first.byte) from None
        raise
