"""Profiles of any format that is known: the content tells which it is."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from analysis.profiling.formats.chrome import is_cpuprofile, is_heapprofile, read_cpuprofile, read_heapprofile
from analysis.profiling.formats.columns import FrameTable, SampleTable
from analysis.profiling.formats.cpu_profile import is_cpu_profile, read_cpu_profile
from analysis.profiling.formats.firefox import is_firefox, read_firefox
from analysis.profiling.formats.folded import is_folded, is_nearly_folded, read_folded
from analysis.profiling.formats.foreign import ForeignProfile
from analysis.profiling.formats.jfr import is_jfr, read_jfr
from analysis.profiling.formats.json_values import Object, json_object
from analysis.profiling.formats.legacy import is_legacy, read_legacy
from analysis.profiling.formats.otlp import is_otlp, is_otlp_json, read_otlp, read_otlp_json
from analysis.profiling.formats.perf_data import is_perf_data, read_perf_data
from analysis.profiling.formats.perf_script import is_perf_script, read_perf_script
from analysis.profiling.formats.perfetto import CONVERTER, is_perfetto
from analysis.profiling.formats.speedscope import is_speedscope, read_speedscope
from analysis.profiling.formats.tables import ProfileStore, refuse_large, totals, uncounted, write_rows, write_tables
from analysis.profiling.import_record import ImportRecord
from analysis.tables.bytes import content_of
from analysis.tables.faults import FileError, refusal
from models.errors import InputError

_HEAD_BYTES = 1 << 16
_FIRST_LINES = 50
_CONVERTERS = (
    (b"Nettrace", "a trace of dotnet", "dotnet-trace convert --format Speedscope FILE"),
    (b"\x04\x08{", "a dump of Ruby's stackprof", "stackprof --stackcollapse FILE > FILE.folded"),
    (b"version: 1\ncreator: callgrind", "of callgrind", "gprof2dot or kcachegrind; pprof and folded stacks are read"),
    (b"# callgrind format", "of callgrind", "gprof2dot or kcachegrind; pprof and folded stacks are read"),
    (b"version: 1\nevents:", "of callgrind", "gprof2dot or kcachegrind; pprof and folded stacks are read"),
    *(
        (begin, "of Python's cProfile", "python -m flameprof --format=log FILE > FILE.folded")
        for begin in (b"\xfb)", b"\xfb\xa9", b"{)", b"{\xa9")
    ),
    (b"gmon\x01\x00\x00\x00", "of gprof", "gprof2dot; pprof and folded stacks are read"),
    (b"v8-version,", "a log of V8", "node --prof-process --preprocess FILE > FILE.json, then speedscope"),
    *(
        (begin, "a trace of events, or other JSON", "speedscope shows it; record folded stacks or pprof to import it")
        for begin in (b'[{"', b"[\n", b"[\r\n")
    ),
    (b"\x7fELF", "a program, not a profile", "--binary FILE names the functions of a profile by it"),
    (b"SIMPLEPERF", "of simpleperf", "simpleperf report-sample --show-callchain, or its stackcollapse.py"),
    (b"\xff\xfe", "text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > FILE.txt"),
    (b"\xfe\xff", "text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > FILE.txt"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd", "zstd -d FILE"),
    (b"\xfd7zXZ\x00", "packed by xz", "xz -d FILE"),
    (b"BZh", "packed by bzip2", "bzip2 -d FILE"),
    (b"PK\x03\x04", "packed by zip", "unzip FILE"),
    (b"go 1.", "a trace of Go", "go tool trace -pprof=sync FILE > FILE.pb"),
    (b"Flat profile:", "of gprof", "gprof2dot; pprof and folded stacks are read"),
    (b"memray\x00", "of memray", "memray flamegraph or memray stats show it; folded stacks are read"),
    (
        b"\x04\x22\x4d\x18",
        "packed by lz4, as memray's are",
        "lz4 -d FILE; memray flamegraph or memray stats show those",
    ),
    (b"SQLite format 3\x00", "a database, as of nsys export", "nsys stats lists it; folded stacks and pprof are read"),
    (
        b"NVIDIA Tegra Profiler Report ",
        "a report of Nsight Systems",
        "nsys stats FILE lists it, nsys export --type=sqlite FILE writes its tables; folded stacks and pprof are read",
    ),
    (b"Analysis of sampling", "of macOS's sample", "stackcollapse-sample.awk FILE > FILE.folded (FlameGraph)"),
)
"""How files of other formats begin, what they are, and what converts them."""
_BEFORE_A_TAG = rb"(?:\xef\xbb\xbf)?(?>\s|<\?xml\s[^>]*>|<!--.*?-->|<!(?i:doctype)\s[^>]*>)*+"
_PATTERNS = tuple(
    (re.compile(begin, re.DOTALL), what, converter)
    for begin, what, converter in (
        (
            rb"desc: [^\n]*\ncmd: ",
            "of massif",
            "ms_print or massif-visualizer show it; heap profiles of pprof are read",
        ),
        (
            _BEFORE_A_TAG + rb"<trace-query-result[\s>]",
            "of Instruments",
            "inferno-collapse-xctrace FILE > FILE.folded",
        ),
        (_BEFORE_A_TAG + rb"<svg[\s>]", "a picture", "the folded stacks that it was drawn from are read"),
        (_BEFORE_A_TAG + rb"<html[\s>]", "a page", "the profile that it shows is read, if it is saved as a profile"),
        (rb"(?:\xef\xbb\xbf)?\s*<\?xml\s", "XML", "record folded stacks or pprof to import it"),
    )
)
"""How files of other formats begin that take more than a few letters to tell from folded stacks, as above."""
_PYINSTRUMENT = (
    ("root_frame", "pyinstrument -r speedscope -o FILE, when it is recorded"),
    ("frame_records", "pyinstrument --load FILE -r speedscope -o FILE.json"),
)
"""A key of JSON of pyinstrument, and what makes speedscope's of it."""
_KNOWN_FORMATS = (
    "pprof, its older text formats, OTLP, folded stacks, perf script, perf.data, JFR, gperftools, speedscope, "
    "cpuprofile or Firefox"
)
_MOST_CONTROLS = 0.1
"""Share of other control characters in what may still be text, as of a name with a NUL."""
_TEXT = frozenset((9, 10, 12, 13, 27)) | frozenset(range(32, 256))


def read_foreign(path: Path) -> ForeignProfile:
    """Read a profile of another tool, perhaps gzipped: see docs/profiling.md for the formats.

    Parameters
    ----------
    path : the file; its content tells the format, its name does not

    Raises
    ------
    FileError
        With every fault of the file; if it is empty, damaged, larger than 512 MiB unpacked, or of no format known.
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
    profile = _read(content_of(path), str(path))
    return replace(profile, samples=SampleTable.of(profile.samples))


def _read(data: bytes, name: str) -> ForeignProfile:
    _refuse_others(data, name)
    for is_such, read in _BY_CONTENT:
        if is_such(data):
            return read(data, name)
    if not set(data[:_HEAD_BYTES]) <= _TEXT:
        return _binary(data, name)
    lines = _first_lines(data)
    if (read_text := _reader_of_text(lines)) is not None:
        return read_text(data, name)
    raise refusal(
        name, "file", f"should be a profile: {_KNOWN_FORMATS}", next((line for line in lines if line.strip()), "")
    )


def _first_lines(data: bytes) -> list[str]:
    """Return the lines that begin in the first 64 KiB; of one that is longer, its begin and its end."""
    end = data.find(b"\n", _HEAD_BYTES)
    last = data[_HEAD_BYTES : end if end >= 0 else len(data)][-_HEAD_BYTES:]
    return (data[:_HEAD_BYTES] + last).decode(errors="replace").splitlines()[:_FIRST_LINES]


def _reader_of_text(lines: list[str]) -> Callable[[bytes, str], ForeignProfile] | None:
    """Return what reads a text of such first lines; None if they are of no format that is known."""
    if is_legacy(lines):
        return read_legacy
    if is_perf_script(lines):
        return read_perf_script
    return read_folded if any(is_folded(line) or is_nearly_folded(line) for line in lines) else None


def _refuse(faults: Sequence[FileError]) -> None:
    """Say the faults of all files at once, if there are any."""
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise InputError("\n".join(map(str, faults)))


def write_profile(paths: Sequence[Path], folder: Path) -> list[str]:
    """Write profiles of other tools as the tables of a profile directory, and return notes on them.

    A profile that holds the very samples of an earlier one, begun at the same time, is left out, and so is a file that
    cannot be read as long as another can.

    Parameters
    ----------
    paths : files, which are let go of one after another
    folder : an existing folder
    """
    store, contents = ProfileStore(), Contents()
    copies, notes, faults = list[str](), list[tuple[str, str]](), list[FileError]()
    for path in paths:
        try:
            profile = read_foreign(path)
            refuse_large(profile)
        except FileError as error:
            faults.append(error)
            continue
        if note := contents.note(profile):
            copies.append(note)
            continue
        store.add(profile)
        notes += [(profile.name, note) for note in notes_of(profile)]
    if len(faults) == len(paths):
        _refuse(faults)
    write_tables(store.small(store.collections()), folder)
    write_rows(store.samples.batches(store.events), store.stacks.batches(), folder, taken=store.samples.taken)
    ImportRecord(machines=store.numbered_machines(), origin_s=store.origin_s).write(folder)
    left_out = [f"left out: {error.lines()[0]}" for error in faults]
    return [*left_out, *copies, *joined_notes(notes)]


@dataclass(slots=True)
class Contents:
    """Digests of what profiles hold, to the name of the first that holds it."""

    first: dict[bytes, str] = field(default_factory=dict)

    def note(self, profile: ForeignProfile) -> str:
        """Return which earlier profile holds the very samples of this, begun at the same time; empty: none."""
        if not profile.samples:
            return ""
        content = digest_of_content(profile)
        if content in self.first:
            return f"{profile.name}: left out: holds the very samples of {self.first[content]}"
        self.first[content] = profile.name
        return ""


def digest_of_content(profile: ForeignProfile) -> bytes:
    """Return a digest of what a profile holds: when it began, measures, frames, samples and where they were taken.

    Examples
    --------
    >>> profile, other = ForeignProfile((), name="a", start_s=1.0), ForeignProfile((), name="b")
    >>> [digest_of_content(other) == digest_of_content(profile) for other in (replace(other, start_s=1.0), other)]
    [True, False]
    """
    frames, samples = FrameTable.of(profile.frames), SampleTable.of(profile.samples)
    start_s = None if math.isnan(profile.start_s) else profile.start_s
    digest = blake2b(repr((start_s, profile.measures, profile.origins, len(frames), len(samples))).encode())
    for part in itertools.chain(frames.content(), samples.content()):
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()


def notes_of(profile: ForeignProfile) -> tuple[str, ...]:
    """Return what a reader should know about how a file was understood."""
    return (*profile.notes, *_amounts(profile), *([] if _counts(profile) else ["no samples: all counts are zero"]))


def joined_notes(notes: Iterable[tuple[str, str]]) -> list[str]:
    """Return notes on files, as file and note, each note once with the files it is about.

    Examples
    --------
    >>> joined_notes([(name, "no times") for name in ("a.pb", "b.pb", "c.pb")])
    ['a.pb and 2 more files: no times']
    """
    files: dict[str, list[str]] = {}
    for name, note in notes:
        files.setdefault(note, []).append(name)
    return [f"{_names(names)}: {note}" for note, names in files.items()]


def _names(names: Sequence[str]) -> str:
    more = len(names) - 1
    return names[0] + (f" and {more:,} more file{'s' * (more > 1)}" if more else "")


def _amounts(profile: ForeignProfile) -> list[str]:
    """Return a note on the events whose samples the file does not count."""
    events = uncounted(profile)
    return [f"{', '.join(events)}: amounts without a count of samples: each record counts as one"] if events else []


def _counts(profile: ForeignProfile) -> bool:
    """Return whether any event of a file has a sample or a value."""
    samples = SampleTable.of(profile.samples)
    return any(map(samples.total, range(len(profile.measures)))) or any(total.samples for total in totals(profile))


def _refuse_others(data: bytes, name: str) -> None:
    """Refuse files of formats that are not read by name, with what converts them."""
    for begin, what, converter in _CONVERTERS:
        if data.startswith(begin):
            raise refusal(name, "file", f"is {what}, which is not read: {converter}", data[:16].hex())
    head = data[:4096]
    if is_folded(head.decode(errors="replace").strip().partition("\n")[0]):
        return
    for begin, what, converter in _PATTERNS:
        if begin.match(head):
            raise refusal(name, "file", f"is {what}, which is not read: {converter}", head[:16].hex())


def _of_json(data: bytes, name: str) -> ForeignProfile:
    """Read what is JSON."""
    content = json_object(data, name)
    for is_such, read in _JSON:
        if is_such(content):
            return read(content, name)
    if "traceEvents" in content:
        convert = "open it in Chrome's developer tools (Performance) and save the CPU profile, or use speedscope"
        raise refusal(name, "file", f"is a trace of events, not a profile: {convert}", "traceEvents")
    for key, convert in _PYINSTRUMENT:
        if key in content:
            raise refusal(name, "file", f"is of pyinstrument, which is not read: {convert}", key)
    keys = ", ".join(list(content)[:8])
    raise refusal(name, "file", f"should be JSON of {_JSON_FORMATS}", f"an object with {keys}")


def _is_json(data: bytes) -> bool:
    return data[:_HEAD_BYTES].lstrip()[:1] == b"{"


_BY_CONTENT: tuple[tuple[Callable[[bytes], bool], Callable[[bytes, str], ForeignProfile]], ...] = (
    (is_cpu_profile, read_cpu_profile),
    (is_perf_data, read_perf_data),
    (is_jfr, read_jfr),
    (_is_json, _of_json),
    (is_otlp, read_otlp),
)
_JSON: tuple[tuple[Callable[[Object], bool], Callable[[Object, str], ForeignProfile]], ...] = (
    (is_otlp_json, read_otlp_json),
    (is_speedscope, read_speedscope),
    (is_cpuprofile, read_cpuprofile),
    (is_heapprofile, read_heapprofile),
    (is_firefox, read_firefox),
)
_JSON_FORMATS = "OTLP, speedscope, Chrome (.cpuprofile, .heapprofile) or Firefox"


def _binary(data: bytes, name: str) -> ForeignProfile:
    """Read what is not text: pprof's format, text with a few control characters, or nothing that is known."""
    from analysis.profiling.formats.pprof import read_pprof  # what is compiled loads Numba

    if is_perfetto(data):
        raise refusal(name, "file", f"is a trace of Perfetto, which is not read: {CONVERTER}", data[:16].hex())
    try:
        return read_pprof(data, name)
    except FileError as error:
        if all(fault.field in {"profile", "number"} for fault in error.faults):
            read_text = _reader_of_text(_first_lines(data)) if _is_nearly_text(data[:_HEAD_BYTES]) else None
            if read_text is not None:
                return read_text(data, name)
            known = "should be a profile of a known format; as pprof's, "
            first = error.faults[0]
            raise refusal(name, "file", known + first.problem, first.got, byte=first.byte) from None
        raise


def _is_nearly_text(head: bytes) -> bool:
    return sum(byte not in _TEXT for byte in head) <= _MOST_CONTROLS * len(head)
