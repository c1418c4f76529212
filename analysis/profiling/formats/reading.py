"""Profiles of any format that is known: the content tells which it is."""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis.profiling.formats.cpu_profile import is_cpu_profile, read_cpu_profile
from analysis.profiling.formats.folded import is_folded, is_nearly_folded, read_folded
from analysis.profiling.formats.foreign import ForeignProfile
from analysis.profiling.formats.perf_script import is_perf_script, read_perf_script
from analysis.profiling.formats.pprof import read_pprof
from analysis.profiling.formats.tables import to_tables
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
