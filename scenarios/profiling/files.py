"""Profiles of other tools become profile directories, and profile directories become files of other tools."""

import itertools
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.profiling.import_record import ImportFolderError, ImportRecord
from models.errors import InputError, WscError
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.profiling.query import known_values, matching
from scenarios.runs.disk import alone, hidden, whole
from scenarios.runs.rundir import FolderError, make_folder
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import amount, closest, plural
from scenarios.views.section import Says, Section
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    import pandas as pd

    from analysis.profiling.formats.appending import ImportedRows
    from analysis.profiling.formats.binaries import Binary
    from analysis.profiling.formats.foreign import ForeignProfile, Frame, Measure, Origin
    from analysis.profiling.formats.manifest import ManifestEntry
    from analysis.profiling.formats.reading import Contents
    from analysis.profiling.formats.tables import FileTotal, ProfileStore

    _Reader = Callable[[ForeignProfile, Origin], str]

FORMATS = ("pprof", "folded", "speedscope", "llvm")
"""What profiles are exported as."""
_LISTED = 12
_AT_ONCE = 100_000
"""Samples that are looked at at once."""


@dataclass(frozen=True, slots=True, repr=False)
class Imported(Conclusion):
    """What was read of other tools' files: the answer of ``wsc profile import``."""

    out: Path
    totals: list["FileTotal"]
    """Of each event of each file."""
    rows: dict[str, int]
    """Of each table."""
    notes: list[str]

    def frame(self) -> "pd.DataFrame":
        """Return file, event, unit, period, samples, value."""
        import pandas as pd

        return pd.DataFrame([asdict(total) for total in self.totals])

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "profile import",
            "out": str(self.out),
            "totals": [asdict(total) for total in self.totals],
            "rows": self.rows,
            "notes": self.notes,
        }

    def section(self) -> Section:
        """Return a line an event of each file; of more than a dozen files, of all together."""
        lines = [
            f"{total.file}: {total.event}: {plural(total.samples, 'sample')}, {total.value:,} {total.unit}"
            for total in _summed(self.totals)
        ]
        rows = f"{self.out}: {plural(self.rows['samples'], 'row')} of samples"
        return Section("", tuple(map(Says, (*lines, *self.notes, rows))))


@dataclass(frozen=True, slots=True, repr=False)
class Exported(Conclusion):
    """What was written for another tool: the answer of ``wsc profile export``."""

    out: Path
    form: str
    event: str
    samples: int
    value: int | None
    """Estimate for the fleet in the event's unit; none: too large for the format."""
    written: int
    """Sum of what the file holds: of samples, or of values if weighted."""
    unit: str
    """Of the value."""
    size: int
    """Bytes."""
    notes: list[str]

    def frame(self) -> "pd.DataFrame":
        """Return the event's row: samples, value, written, unit."""
        import pandas as pd

        row = {"event": self.event, "samples": self.samples, "value": self.value}
        return pd.DataFrame([row | {"written": self.written, "unit": self.unit}])

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "profile export",
            "out": str(self.out),
            "format": self.form,
            "event": self.event,
            "samples": self.samples,
            "value": self.value,
            "written": self.written,
            "unit": self.unit,
            "bytes": self.size,
            "notes": self.notes,
        }

    def section(self) -> Section:
        """Return what the file holds."""
        of_fleet = "" if self.value is None else f", {amount(self.value)} {self.unit} in the fleet"
        counts = f"{plural(self.samples, 'sample')}{of_fleet}; a file of {plural(self.size, 'byte')}"
        return Section("", tuple(map(Says, (f"{self.out}: {self.event}: {counts}", *self.notes))))


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """What of a profile is exported."""

    event: str | None = None
    """None: cycles, or the first event of a profile that has no cycles."""
    where: tuple[str, ...] = ()
    """Restrictions such as `job=search`."""
    weighted: bool = False
    """Values for the fleet in place of samples."""


EVERYTHING = ExportSelection()
"""All samples of one event."""


def import_files(
    paths: Sequence[Path],
    out: Path,
    progress: Progress | None = None,
    machines: int | None = None,
    *,
    equal_lengths: bool = False,
    append: bool = False,
    machine_from: str | None = None,
    service_from: str | None = None,
    manifest: Path | None = None,
    binaries: Sequence[Path] = (),
    source_root: Path | None = None,
    source_links: Sequence[str] = (),
) -> Imported:
    """Read profiles of other tools into a profile directory, which appears or changes when it is complete.

    A file that cannot be read is left out, with a note, if any other can; so is one that is there already. Imports
    into the same directory wait for each other.

    Parameters
    ----------
    paths : files in any format of `analysis.profiling.formats.reading`, or patterns of their names
    out : the directory
    progress : called with what is being done
    machines : of the fleet that those of the files were drawn from at random, one profile each; none: nobody drew
    equal_lengths : of drawn machines, whether all were profiled equally long, where the files do not say how long
    append : whether files are added to those of an earlier import, if `out` is there; it must not be there otherwise
    machine_from, service_from : what says the machine and the service of a file: see `origins.reader_of`; where
        nothing is given, as in the import before
    manifest : a table of further files, which says where and when each was taken: see `manifest.read_manifest`; what it
        says counts more than what the options say
    binaries : programs, libraries and debug files that name the addresses of files without symbols
    source_root : folder in which the source files lie whose text is kept beside the profile
    source_links : ``URL`` or ``PREFIX=URL`` of repositories to which pages link: see `links.parse_link`; those of
        earlier imports stay

    Raises
    ------
    FaultsError
        If there is no file, `out` is there or cannot be made, an option is wrong, or the files are no small sample of
        the fleet: too many, of lengths that differ and are not known, or that differ and are said to be equal.
    ValueError
        With every fault of the files, if none can be read; with every fault of the manifest.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "stacks.txt"
    ...     _ = file.write_text("main;read 12\\n")
    ...     import_files([file], Path(folder) / "made").totals[0].value
    12
    """
    from analysis.profiling.formats.appending import EarlierImport, ImportedRows, appended
    from analysis.profiling.formats.fleet import Recount
    from analysis.profiling.formats.sources import with_sources

    later = append and out.exists() and bool(source_links or source_root is not None)
    if not paths and manifest is None and not later:
        raise FaultsError([Fault("FILE", 0, 0, "", "should be at least one")])
    paths, entries, of_columns = _named(paths, manifest)
    links = _links(source_links)
    if source_root is not None and not source_root.is_dir():
        raise FaultsError([Fault("--source-root", 0, 0, "", f"should be a folder: {source_root}")])
    _refuse_there(out, append)
    _sources(machine_from, service_from)
    sampled = _binaries(binaries)
    with alone(out, progress) as locked:
        _refuse_there(out, append)
        record = _recorded(out)
        machine_from, service_from = machine_from or record.machine_from, service_from or record.service_from
        files = _Files(record.files, *_sources(machine_from, service_from), _beside(out), entries)
        if sampled:
            files.look_up(paths, sampled, progress)
        files.read(paths, out, progress)
        store, notes = files.store, [*of_columns, *files.all_notes()]
        if not locked:
            notes.append(f"the file system of {out} has no locks: of two imports at once one may be lost")
        earlier = EarlierImport.read(out) if out.exists() else None
        tables = earlier.tables if earlier is not None else {}
        rows = ImportedRows(store, earlier)
        if store.names:
            origin_s = store.origin_s if record.origin_s is None else record.origin_s
            collections = store.collections(record.files.values())
            added, names = store.small(collections, origin_s), store.numbered_machines()
            known = {number: record.machines[name] for name, number in names.items() if name in record.machines}
            past = earlier.next_numbers()["machine"] if earlier is not None else 0
            tables = appended(earlier, added, known) if earlier is not None else added
            record = ImportRecord(
                record.files | dict(zip(files.digests, collections, strict=True)),
                {name: number + past for name, number in names.items()} | record.machines,
                origin_s,
                drawn_from=record.drawn_from if machines is None else machines,
                equal_lengths=record.equal_lengths or equal_lengths,
                spans=record.spans or any(profile.span for profile in files.outlines),
                links=record.links,
                machine_from=machine_from,
                service_from=service_from,
            )
            if record.drawn_from is not None:
                rows = ImportedRows(store, earlier, Recount.of_files(tables))
                tables, told = _drawn(files.outlines, tables, record)
                notes += told
        if source_root is not None and tables:
            tables, told = with_sources(tables, source_root)
            notes += told
        if links and tables:
            record = record.linked(links)
            notes += _linked(record.links, tables)
        if tables and (store.names or links or source_root is not None):
            lengths = _write_folder(tables, rows, record, out)
        else:
            lengths = earlier.rows() if earlier is not None else {}
        return Imported(out, files.totals, lengths, notes)


def _named(paths: Sequence[Path], manifest: Path | None) -> "tuple[list[Path], dict[Path, ManifestEntry], list[str]]":
    """Return the files of paths, patterns and a manifest, what this says of its own, and notes on it."""
    entries, notes = _manifest(manifest)
    files = [file for path in paths for file in ([path] if path.exists() else matching(path) or [path])]
    return [*files, *entries], entries, notes


def _manifest(path: Path | None) -> "tuple[dict[Path, ManifestEntry], list[str]]":
    """Return what a manifest says of files, and notes on it; nothing without one."""
    from analysis.profiling.formats.manifest import read_manifest

    if path is None:
        return {}, []
    if not path.is_file():
        problem = "should be a table of files, not a folder" if path.is_dir() else "is not there"
        raise FaultsError([Fault("--manifest", 0, 0, "", problem, shown(str(path)))])
    return read_manifest(path)


def _refuse_there(out: Path, append: bool) -> None:
    if out.exists() and not append:
        raise FaultsError([Fault("--out", 0, 0, "", f"is already there: {out}; --append adds files to it")])


def _sources(machine_from: str | None, service_from: str | None) -> "tuple[_Reader | None, _Reader | None]":
    return _source("--machine-from", machine_from), _source("--service-from", service_from)


def _source(option: str, source: str | None) -> "_Reader | None":
    """Return what reads the machine or the service of a file, or nothing."""
    from analysis.profiling.formats.origins import reader_of

    if source is None:
        return None
    try:
        return reader_of(source)
    except InputError as error:
        raise FaultsError([Fault(option, 0, 0, "", str(error), shown(source))]) from None


def _links(texts: Sequence[str]) -> dict[str, str]:
    """Return templates by prefix, or raise the faults of all texts that are none."""
    from analysis.profiling.formats.links import parse_link

    links, faults = dict[str, str](), list[Fault]()
    for text in texts:
        try:
            prefix, template = parse_link(text)
        except InputError as error:
            faults.append(Fault("--source-link", 0, 0, "", str(error), shown(text)))
            continue
        links[prefix] = template
    if faults:
        raise FaultsError(faults)
    return links


def _linked(links: Mapping[str, str], tables: Mapping[str, "pd.DataFrame"]) -> list[str]:
    """Return notes on what links to a repository."""
    from analysis.profiling.formats.links import link_notes

    labels = set(tables["labels"]["key"].astype(str)) if "labels" in tables else set[str]()
    return link_notes(links, set(tables["locations"]["file"].astype(str)), labels)


def _binaries(paths: Sequence[Path]) -> list["Binary"]:
    """Return binaries, or raise the faults of all that are none."""
    from analysis.profiling.formats.binaries import read_binary

    read, faults = list["Binary"](), list[Fault]()
    for path in paths:
        if problem := _no_file(path):
            faults.append(Fault("--binary", 0, 0, "", f"{path} {problem}"))
            continue
        try:
            read.append(read_binary(path))
        except (WscError, OSError) as error:
            faults.append(Fault("--binary", 0, 0, "", str(error)))
    if faults:
        raise FaultsError(faults)
    return read


def _recorded(out: Path) -> "ImportRecord":
    """Return what a folder says of the files that were imported into it; nothing of one that is not there."""
    try:
        return ImportRecord.read(out) if out.exists() else ImportRecord()
    except ImportFolderError as error:
        raise FaultsError([Fault("--out", 0, 0, "", str(error))]) from None


def export(runs: Sequence[Path], form: str, out: Path, selection: ExportSelection = EVERYTHING) -> Exported:
    """Write what a profile holds of an event into a file for other tools.

    Parameters
    ----------
    runs : profile directories
    form : pprof (both samples and values; weighted: values are shown first), folded, speedscope or llvm (one image)
    out : the file, replaced when the new one is complete
    selection : what of it

    Raises
    ------
    FaultsError
        If there is no such format, the folder of `out` is not there, llvm is asked for several images, or values for
        the fleet do not fit 64 bits.
    ValueError
        If the profile cannot be read, or the event or a restriction is unknown.
    """
    from analysis.profiling.database import Database
    from analysis.profiling.formats.extract import extract_parts
    from analysis.profiling.query import Query, event_or_default, parse_where, unknown

    if form not in FORMATS:
        raise FaultsError([Fault("--format", 0, 0, "", closest(form, FORMATS), shown(form))])
    if out.is_dir() or not out.parent.is_dir():
        problem = "is a folder" if out.is_dir() else f"no folder {out.parent}"
        raise FaultsError([Fault("--out", 0, 0, "", problem, shown(str(out)))])
    where = parse_where(selection.where)
    with Database(runs) as database, known_values():
        events = database.events()
        event = event_or_default(events, selection.event)
        if event not in events:
            raise FaultsError([Fault("--event", 0, 0, "", unknown("event", event, events))])
        query, unit = Query(event, where=where), database.units().get(event, "")
        parts = extract_parts(database, query, out.name)
        first = [next(parts)]
        measures, notes = first[0].measures, [*first[0].notes]
        fits = len(measures) > 1
        if selection.weighted and not fits:
            raise FaultsError([Fault("--weighted", 0, 0, "", notes[0])])
        sums = _Sums([0] * len(measures))
        content, remarks = _WRITERS[form](
            sums.of(itertools.chain(_taken_out(first), parts)), measures[selection.weighted]
        )
        size = _write_file(content, out)
    notes += remarks
    if form in _OF_ONE_MEASURE and fits and not selection.weighted and not sums.alike:
        notes.append(f"the file counts samples, whose shares are not those of {event}; --weighted writes {event}")
    return Exported(
        out,
        form,
        event,
        sums.totals[0],
        value=sums.totals[1] if fits else None,
        written=sums.totals[selection.weighted],
        unit=unit,
        size=size,
        notes=notes,
    )


@dataclass(slots=True)
class _Sums:
    """What the parts of a profile add up to."""

    totals: list[int]
    """Of each measure: samples, and the event's values."""
    least: float = math.inf
    most: float = 0.0
    """The fewest and the most samples of a value."""

    def of(self, parts: Iterable["ForeignProfile"]) -> Iterator["ForeignProfile"]:
        """Yield parts, and add them up."""
        import numpy as np

        from analysis.profiling.formats.columns import SampleTable

        for part in parts:
            table = SampleTable.of(part.samples)
            self.totals = [total + table.total(at) for at, total in enumerate(self.totals)]
            for first in range(0, len(table) if self.totals[1:] else 0, _AT_ONCE):
                samples, value = table.amounts[first : first + _AT_ONCE].T.astype(np.float64)
                some = (samples > 0) | (value > 0)
                with np.errstate(divide="ignore"):
                    ratio = samples[some] / value[some]
                self.least = min(self.least, float(ratio.min(initial=np.inf)))
                self.most = max(self.most, float(ratio.max(initial=0.0)))
            del table
            yield part
            del part

    @property
    def alike(self) -> bool:
        """Whether every sample stands for as much of the event, so that both have the same shares."""
        return self.most <= self.least * (1 + 1e-6)


def _taken_out(parts: list["ForeignProfile"]) -> Iterator["ForeignProfile"]:
    """Yield the parts of a list, which has them no longer."""
    while parts:
        yield parts.pop(0)


def _summed(totals: Sequence["FileTotal"]) -> Sequence["FileTotal"]:
    """Return totals by file and event, of many files those by event alone."""
    files = {total.file for total in totals}
    if len(files) <= _LISTED:
        return totals
    sums: dict[tuple[str, str], FileTotal] = {}
    for total in totals:
        key = total.event, total.unit
        before = sums.get(key, replace(total, file=f"{len(files):,} files", samples=0, value=0))
        sums[key] = replace(before, samples=before.samples + total.samples, value=before.value + total.value)
    return list(sums.values())


def _drawn(
    profiles: Sequence["ForeignProfile"], tables: Mapping[str, "pd.DataFrame"], record: "ImportRecord"
) -> tuple[dict[str, "pd.DataFrame"], list[str]]:
    """Return files as a sample of so many machines, and notes on it."""
    from analysis.profiling.formats.fleet import LengthError, SampleError, drawn, levels, unlike_lengths

    machines, equal_lengths = record.drawn_from or 0, record.equal_lengths
    if faults := _faulty_lengths(profiles, equal_lengths=equal_lengths):
        raise FaultsError(faults)
    unlike_s = unlike_lengths(profiles)
    try:
        weighted = drawn(tables, machines, spans=record.spans, equal=equal_lengths)
    except LengthError as error:
        problem = f"{error}; {_cure(profiles)}"
        raise FaultsError([Fault("--drawn-from", 0, 0, "", problem)]) from None
    except SampleError as error:
        raise FaultsError([Fault("--drawn-from", 0, 0, "", str(error))]) from None
    visits = weighted["visits"]
    notes = [_stands_for(visits, machines)]
    if equal_lengths and unlike_s is not None:
        between = f"lengths of {unlike_s[0]:g} s to {unlike_s[1]:g} s are left out of account"
        notes.append(f"{between}: right for levels such as {levels(profiles)[0]}, wrong for counts over time")
    if not equal_lengths and not visits["length_s"].any():
        notes.append("no file says how long it took: all are taken as equally long")
    again = len(visits) - visits["machine"].nunique()
    if again:
        notes.append(f"{plural(again, 'visit')} to machines visited before: intervals take them for other machines")
    return weighted, notes


def _faulty_lengths(profiles: Sequence["ForeignProfile"], *, equal_lengths: bool) -> list[Fault]:
    """Return what is wrong with the lengths that files say: under a millisecond beside longer, or said to be equal."""
    from analysis.profiling.formats.fleet import SHORTEST_S, levels, too_short, unlike_lengths

    unlike_s = unlike_lengths(profiles)
    if unlike_s is None or (equal_lengths and levels(profiles)):
        return []
    least_s, most_s = unlike_s
    least = f"should be at least {SHORTEST_S:g} s beside files of up to {most_s:g} s: leave it out or record it anew"
    faults = [Fault(name, 0, 0, "", f"its length {least}", f"{length_s:g} s") for name, length_s in too_short(profiles)]
    if equal_lengths:
        problem = f"the files say {least_s:g} s to {most_s:g} s; leave --equal-lengths out"
        faults.append(Fault("--equal-lengths", 0, 0, "", problem))
    return faults


def _cure(profiles: Sequence["ForeignProfile"]) -> str:
    """Return in words what mends lengths that cannot be weighed by."""
    from analysis.profiling.formats.fleet import levels, unlike_lengths

    unlike_s = unlike_lengths(profiles)
    if unlike_s is None or levels(profiles):
        return "--equal-lengths takes all as equally long"
    lengths = f"files that do say their lengths, {unlike_s[0]:g} s to {unlike_s[1]:g} s, differ"
    return f"{lengths}: leave the others out or record them anew"


def _stands_for(visits: "pd.DataFrame", machines: int) -> str:
    """Return in a line for how many machines visits stand, and for how long where lengths differ."""
    text = f"each of {plural(len(visits), 'visit')} stands for {round(machines / len(visits)):,} machines"
    weight, length_s = visits["weight"].to_numpy(), visits["length_s"].to_numpy()
    if (weight == weight[0]).all():
        return text
    longest = length_s.argmax()
    time_s = length_s[longest] * weight[longest] / round(machines / len(visits))
    between = f"visits of {length_s.min():g} s to {length_s.max():g} s are weighted by rate"
    return f"{text}, for {time_s:g} s: {between}, so that a longer one counts no more"


@dataclass(slots=True)
class _Files:
    """Files that are read one after another: samples and call paths go to a shelf, a file is let go of then."""

    imported: Mapping[str, str]
    """Digests of files that were imported earlier, to their collections."""
    machine: "Callable[[ForeignProfile, Origin], str] | None"
    service: "Callable[[ForeignProfile, Origin], str] | None"
    folder: Path
    """Where the shelf's file is, without a name."""
    manifest: "Mapping[Path, ManifestEntry]" = field(default_factory=dict)
    """What is said of files besides."""
    names: "dict[Frame, list[Frame]]" = field(default_factory=dict)
    """What binaries name frames without a function."""
    digests: list[str] = field(default_factory=list)
    """Of the files in the store."""
    outlines: list["ForeignProfile"] = field(default_factory=list)
    """These files without frames, samples and origins."""
    totals: list["FileTotal"] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Notes on files that were imported before."""
    copies: list[str] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    """Files and what a reader should know about them."""
    told: list[str] = field(default_factory=list)
    """Notes on binaries."""
    faults: list[Exception] = field(default_factory=list)
    """Of files that are left out."""
    store: "ProfileStore" = field(init=False)
    contents: "Contents" = field(init=False)

    def __post_init__(self) -> None:
        from analysis.profiling.formats.reading import Contents
        from analysis.profiling.formats.tables import ProfileStore
        from analysis.profiling.shelf import Shelf

        self.store, self.contents = ProfileStore(Shelf(folder=self.folder)), Contents()

    def look_up(self, paths: Sequence[Path], binaries: Sequence["Binary"], progress: Progress | None) -> None:
        """Ask binaries for the names of what files say addresses of: files are read twice then."""
        from analysis.profiling.formats.appending import digest_of
        from analysis.profiling.formats.binaries import names_of, unnamed
        from analysis.profiling.formats.reading import read_foreign

        frames: dict[Frame, None] = {}
        for number, path in enumerate(paths):
            if progress is not None:
                progress("reading addresses", number / len(paths))
            with suppress(ValueError, OSError):  # faults are those of the second reading
                if not _no_file(path) and digest_of(path) not in self.imported:
                    frames |= dict.fromkeys(unnamed(read_foreign(path)))
        self.names, self.told = names_of(frames, binaries)

    def read(self, paths: Sequence[Path], out: Path, progress: Progress | None) -> None:
        """Read files into the store; raise all faults if no file can be used, or one has no name that is asked for."""
        from analysis.tables.faults import FileError

        refused = list[Exception]()
        for number, path in enumerate(paths):
            if progress is not None:
                progress("reading", number / len(paths))
            entry = self.manifest.get(path)
            profile = self._read(path, entry)
            if profile is None:
                continue
            try:
                self._add(profile, entry)
            except FileError as error:
                refused.append(error)
            except OSError as error:
                problem = f"cannot write beside {out}: {error.strerror or error}"
                raise FaultsError([Fault("--out", 0, 0, "", problem)]) from None
        if refused or not (self.store.names or self.left_out):
            _raise([*refused, *self.faults])

    def all_notes(self) -> list[str]:
        """Return all notes in their order."""
        from analysis.profiling.formats.reading import joined_notes

        faults = [f"left out: {_first_of(error)}" for error in self.faults]
        return [*self.left_out, *faults, *self.copies, *joined_notes(self.remarks), *self.told]

    def _read(self, path: Path, entry: "ManifestEntry | None") -> "ForeignProfile | None":
        """Return a file's profile; nothing where it is left out."""
        from analysis.profiling.formats.appending import digest_of
        from analysis.profiling.formats.reading import read_foreign
        from analysis.profiling.formats.tables import refuse_large

        if problem := _no_file(path):
            self.faults.append(FaultsError([Fault(str(path), 0, 0, "", problem)]))
            return None
        try:
            digest = digest_of(path)
            if digest in self.imported:
                self.left_out.append(f"{path}: left out: it was imported before, as {self.imported[digest]}")
                return None
            profile = read_foreign(path) if entry is None else entry.of(read_foreign(path))
            refuse_large(profile)
        except (ValueError, OSError) as error:
            self.faults.append(error)
            return None
        if note := self.contents.note(profile):
            self.copies.append(note)
            return None
        self.digests.append(digest)
        return profile

    def _add(self, profile: "ForeignProfile", entry: "ManifestEntry | None") -> None:
        """Add a file to the store, and remember what it is told of."""
        from analysis.profiling.formats.binaries import with_names
        from analysis.profiling.formats.origins import located
        from analysis.profiling.formats.reading import notes_of
        from analysis.profiling.formats.tables import totals

        machine = None if entry is not None and entry.machine else self.machine
        service = None if entry is not None and entry.service else self.service
        profile = with_names(located(profile, machine, service), self.names)
        self.store.add(profile)
        self.totals += totals(profile)
        self.remarks += [(profile.name, note) for note in notes_of(profile)]
        self.outlines.append(replace(profile, frames=(), samples=(), origins=(), comments=(), notes=()))


def _raise(faults: Sequence[Exception]) -> None:
    """Raise faults, if there are any: one as it is, several as one."""
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise InputError("\n".join(map(str, faults)))


def _beside(out: Path) -> Path:
    """Return the nearest folder above a place that is there."""
    return next((folder for folder in out.absolute().parents if folder.is_dir()), Path())


def _first_of(error: Exception) -> str:
    """Return the first line of what is wrong with a file, and how many more there are."""
    first, *more = str(error).splitlines() or [type(error).__name__]
    return f"{first} (and {len(more)} more)" if more else first


def _no_file(path: Path) -> str:
    """Return why a path is no file to import; empty: it may be one."""
    if path.is_dir():
        return "is a folder; files are imported, and a folder with a profile's tables needs no import"
    return "" if path.exists() else "is not there"


def _write_folder(
    tables: Mapping[str, "pd.DataFrame"], rows: "ImportedRows", record: "ImportRecord", out: Path
) -> dict[str, int]:
    """Write tables into a hidden folder beside its place, and move it there when it is complete, for what was there.

    Returns
    -------
    dict
        Name of each table to its rows.
    """
    from analysis.profiling.formats.tables import write_rows, write_tables

    partial = hidden(out)
    try:
        make_folder(partial)
        write_tables(tables, partial)
        lengths = write_rows(rows.samples(), rows.steps(), partial, taken=rows.taken)
        record.write(partial)
        before = out.with_name(f".{out.name}.before")
        if out.exists():
            out.rename(before)
        partial.rename(out)
        shutil.rmtree(before, ignore_errors=True)
    except FolderError as error:
        raise FaultsError([Fault("--out", 0, 0, "", str(error).replace(str(partial), str(out)))]) from None
    except OSError as error:
        problem = f"cannot make a folder at {out}: {error.strerror or error}"
        raise FaultsError([Fault("--out", 0, 0, "", problem)]) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return {name: len(table) for name, table in tables.items()} | lengths


def _write_file(parts: Iterable[bytes], out: Path) -> int:
    """Write a file under another name, and give it its own when it is whole; return its bytes."""
    try:
        with whole(out) as partial, partial.open("wb") as file:
            return sum(map(file.write, parts))
    except OSError as error:
        problem = f"cannot write {out}: {error.strerror or error}"
        raise FaultsError([Fault("--out", 0, 0, "", problem)]) from None


def _pprof(parts: "Iterator[ForeignProfile]", measure: "Measure") -> tuple[Iterable[bytes], list[str]]:
    from analysis.profiling.formats.pprof_writing import pprof_parts

    return pprof_parts(_with_default(parts, measure.event)), []


def _with_default(parts: "Iterator[ForeignProfile]", event: str) -> "Iterator[ForeignProfile]":
    for part in parts:
        yield replace(part, default=event)
        del part


def _folded(parts: "Iterator[ForeignProfile]", measure: "Measure") -> tuple[Iterable[bytes], list[str]]:
    from analysis.profiling.formats.folded import folded_lines

    return (line.encode(errors="replace") for line in folded_lines(parts, measure.event)), []


def _speedscope(parts: "Iterator[ForeignProfile]", measure: "Measure") -> tuple[Iterable[bytes], list[str]]:
    from analysis.profiling.formats.speedscope import speedscope_parts

    return speedscope_parts(measure.event, measure.unit, _outermost_first(parts, measure)), []


def _outermost_first(
    parts: "Iterator[ForeignProfile]", measure: "Measure"
) -> "Iterator[tuple[Sequence[Frame], Iterable[list[int]], Sequence[int]]]":
    """Yield frames, stacks that have some of a measure, and how much."""
    from analysis.profiling.formats.columns import SampleTable

    for part in parts:
        table = SampleTable.of(part.samples)
        amounts = table.amount(part.measures.index(measure)).tolist()
        stacks = (stack[::-1] for stack, amount in zip(table.stacks(), amounts, strict=True) if amount)
        yield part.frames, stacks, [amount for amount in amounts if amount]
        del part, table, amounts, stacks


def _llvm(parts: "Iterator[ForeignProfile]", measure: "Measure") -> tuple[Iterable[bytes], list[str]]:
    """Return the samples of the one image that there is, and a note on those that a compiler cannot use."""
    from analysis.profiling.formats.sample_profile import symbolised, write_sample_profile

    images, without = set[str](), list[int]()

    def of_one_image() -> "Iterator[ForeignProfile]":
        for part in parts:
            at, tops = part.measures.index(measure), [part.frames[sample.stack[0]] for sample in part.samples]
            images.update(frame.image for frame in tops)
            if len(images) != 1:
                raise FaultsError([_several_images(sorted(images))])
            amounts = (sample.amounts[at] for sample in part.samples)
            unknown = (not symbolised(frame, frame.image) for frame in tops)
            without.append(sum(itertools.compress(amounts, unknown)))
            yield part
            del part, tops

    profiles = of_one_image()
    first = [next(profiles)]
    (image,) = images
    text = write_sample_profile(itertools.chain(_taken_out(first), profiles), measure.event, image)
    notes = [f"{sum(without):,} without a symbol are left out"] if any(without) else []
    return [text.encode(errors="replace")], notes


def _several_images(images: Sequence[str]) -> Fault:
    listed = ", ".join(images[:_LISTED]) + (f" and {len(images) - _LISTED} more" if len(images) > _LISTED else "")
    return Fault("--where", 0, 0, "", "should choose one image, as --where image=NAME does", listed or "no samples")


_WRITERS: Mapping[str, Callable[["Iterator[ForeignProfile]", "Measure"], tuple[Iterable[bytes], list[str]]]] = {
    "pprof": _pprof,
    "folded": _folded,
    "speedscope": _speedscope,
    "llvm": _llvm,
}
_OF_ONE_MEASURE = ("folded", "speedscope")
"""Formats whose files hold samples or values, where pprof's hold both, and a compiler wants samples."""
