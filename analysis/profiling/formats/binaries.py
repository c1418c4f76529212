"""Names for the addresses of profiles without symbols, from the binaries that were sampled or their debug files."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePath

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from analysis.profiling.formats.foreign import UNKNOWN, ForeignProfile, Frame
from analysis.tables.faults import refusal

TOOLS = {"llvm-symbolizer": ("--output-style=GNU",), "addr2line": ()}
"""What reads symbols and lines of code, the faster one first, with what makes both print alike."""
_LONGEST_S = 600
_UNNAMED = "??"
_DEBUG = ".debug"
_LISTED = 4


@dataclass(frozen=True, slots=True)
class Binary:
    """An ELF file: a program, a library, or the debug file of one."""

    path: Path
    build_id: str
    """As hexadecimal digits; empty if it has none."""
    segments: tuple[tuple[int, int, int], ...]
    """Offset, bytes and virtual address of each part of the file that is loaded."""

    def holds(self, frame: Frame) -> bool:
        """Return whether a frame is of this file: by build id, or by name where either has none.

        The debug file of `prog` may be called `prog.debug`.
        """
        if self.build_id and frame.build_id:
            return self.build_id == frame.build_id.lower()
        return bool(frame.image) and PurePath(frame.image).name == self.path.name.removesuffix(_DEBUG)

    def address(self, file_address: int) -> int | None:
        """Return the virtual address of a byte of the file; nothing if it is not loaded."""
        for offset, size, address in self.segments:
            if offset <= file_address < offset + size:
                return address + file_address - offset
        return None


def read_binary(path: Path) -> Binary:
    """Read where the parts of an ELF file are loaded, and its GNU build id.

    Raises
    ------
    FileError
        If it is not such a file, or cut off.
    OSError
        If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            loaded = tuple(
                (int(segment["p_offset"]), int(segment["p_filesz"]), int(segment["p_vaddr"]))
                for segment in elf.iter_segments(type="PT_LOAD")
            )
            parts = (segment for segment in elf.iter_segments() if isinstance(segment, NoteSegment))
            notes = [note for part in parts for note in part.iter_notes()]
    except (ELFError, ValueError, KeyError, AttributeError) as error:
        raise refusal(str(path), "file", "should be a whole ELF file", str(error) or type(error).__name__) from None
    build_id = next((str(note["n_desc"]) for note in notes if note["n_type"] == "NT_GNU_BUILD_ID"), "")
    return Binary(path, build_id, loaded)


def unnamed(profile: ForeignProfile) -> Iterator[Frame]:
    """Yield a profile's frames without a function."""
    return (frame for frame in profile.frames if frame.function in ("", UNKNOWN))


def names_of(frames: Mapping[Frame, None], binaries: Sequence[Binary]) -> tuple[dict[Frame, list[Frame]], list[str]]:
    """Return what stands for frames that binaries name, and a note on each binary.

    Raises
    ------
    FileError
        If no tool that reads symbols is here, or it cannot read a binary.
    """
    names: dict[Frame, list[Frame]] = {}
    notes = []
    for binary in binaries:
        mine = [frame for frame in frames if frame.file_address >= 0 and binary.holds(frame)]
        places = {frame: at for frame in mine if (at := binary.address(frame.file_address)) is not None}
        functions = _functions(binary, sorted(set(places.values()))) if places else {}
        answers = {frame: _inlined(frame, functions[at]) for frame, at in places.items() if at in functions}
        names |= answers
        notes.append(_told(binary, len(answers), mine, frames))
    return names, notes


def _told(binary: Binary, count: int, mine: Sequence[Frame], unnamed: Mapping[Frame, None]) -> str:
    """Return how many places a binary named, or why none."""
    if mine:
        return f"{binary.path}: names {count} of {len(mine)} places without symbols"
    name = binary.path.name.removesuffix(_DEBUG)
    others = {frame.build_id for frame in unnamed if frame.build_id and PurePath(frame.image).name == name}
    if others and binary.build_id:
        ids = ", ".join(sorted(others))
        return f"{binary.path}: not used: its build id is {binary.build_id}, that of the profile's {ids}"
    images = sorted({PurePath(frame.image).name for frame in unnamed if frame.image})
    if name in images:
        return f"{binary.path}: not used: the profile does not say from which bytes of {name} its places were loaded"
    known = f"they are of {', '.join(images[:_LISTED])}" if images else "there is none, or none says of what"
    return f"{binary.path}: not used: no place without symbols is of an image {name}; {known}"


def _inlined(frame: Frame, functions: Sequence[tuple[str, str, int]]) -> list[Frame]:
    """Return a frame for each function at a place, the innermost first."""
    return [frame._replace(function=function, file=file, line=line) for function, file, line in functions]


def with_names(profile: ForeignProfile, names: Mapping[Frame, list[Frame]]) -> ForeignProfile:
    """Return a profile with named frames in place of others, as `names_of` returns them."""
    if not names:
        return profile
    frames: dict[Frame, int] = {}
    stands_for = [
        tuple(frames.setdefault(frame, len(frames)) for frame in names.get(old, [old])) for old in profile.frames
    ]
    samples = tuple(
        sample._replace(stack=tuple(at for old in sample.stack for at in stands_for[old])) for sample in profile.samples
    )
    return replace(profile, frames=tuple(frames), samples=samples)


def _functions(binary: Binary, addresses: Sequence[int]) -> Mapping[int, list[tuple[str, str, int]]]:
    """Return function, file and line at virtual addresses where they are known, the innermost function first."""
    tool = next((name for name in TOOLS if shutil.which(name)), None)
    if tool is None:
        problem = f"should be read by one of {', '.join(TOOLS)}, which are not here: install binutils or llvm"
        raise refusal(str(binary.path), "file", problem, "none")
    try:
        done = subprocess.run(
            [tool, *TOOLS[tool], "-a", "-f", "-i", "-C", "-e", str(binary.path)],
            input="".join(f"{address:#x}\n" for address in addresses).encode(),
            capture_output=True,
            timeout=_LONGEST_S,
            check=False,
            env={**os.environ, "LC_ALL": "C", "DEBUGINFOD_URLS": ""},
        )
    except subprocess.TimeoutExpired:
        raise refusal(str(binary.path), "file", f"should be read by {tool} in {_LONGEST_S} s", "more") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [str(done.returncode)]
        raise refusal(str(binary.path), "file", f"should be read by {tool}", lines[0])
    return dict(_answers(done.stdout.decode(errors="replace").splitlines()))


def _answers(lines: Sequence[str]) -> Iterator[tuple[int, list[tuple[str, str, int]]]]:
    """Yield addresses and the functions there; lines are an address, then a function and a place by turns."""
    starts = [at for at, line in enumerate(lines) if line.startswith("0x")] + [len(lines)]
    for start, end in pairwise(starts):
        pairs = zip(lines[start + 1 : end : 2], lines[start + 2 : end : 2], strict=False)
        functions = [(function, *_place(place)) for function, place in pairs if function != _UNNAMED]
        if functions:
            yield int(lines[start], 16), functions


def _place(text: str) -> tuple[str, int]:
    """Return file and line, as in `a.c:12 (discriminator 3)`; empty and 0 where they are not known."""
    file, _, line = text.partition(" (discriminator")[0].rpartition(":")
    return ("" if file.startswith(_UNNAMED) else file), int(line) if line.isdigit() else 0
