"""Images: the builds of programs, what they are made of, and the repository of unstripped binaries and sources.

The repository keeps unstripped images by build, of which some never reached it, and says which line of which file each
address is. A file has a signature of its content: a release that changes one of its functions gives it a new one, and
all builds of the same content share the old one. The text of the lines is invented; it only has to look like a program.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from models.arrays import Bools, Ints
from models.profiling.programs import ProgramArrays
from models.profiling.world import ProfileWorld
from sim.profiling.addresses import DAEMON, INSTRUCTION_BYTES, Addresses, lay_out_images
from sim.profiling.builds import OLD, Builds, changed_functions
from sim.profiling.draws import mixed
from sim.recorder import Values

Columns = dict[str, Values]


_NOUNS = ("shard", "query", "entry", "buffer", "score", "cursor", "block", "token", "request", "result", "page", "key")
_VERBS = ("advance", "lookup", "append", "decode", "merge", "hash", "score", "copy", "check", "update", "seek", "load")
_STATEMENTS = (
    "  auto {a} = {verb}({b});",
    "  {a}->{verb}({b});",
    "  if (!{verb}({a}, {b})) return false;",
    "  for (auto& {a} : {b}) {verb}({a});",
    "  total += {verb}({a}, {b});",
)
_OPENING = (
    "",
    "// Part of the fleet's code base.",
    "#include <cstdint>",
    "#include <vector>",
    "namespace {",
    "}  // namespace",
)
_BLANK, _CLOSING = 0, 6
"""Rows of the vocabulary: nothing, and the end of a function."""


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Contents of source files: what each of F functions' file looks like in each of B builds.

    `of_function` is the number of a function's file, −1 for code generated at run time; `version` has, like
    `Addresses.function_start`, an entry for every function of every build: its file's content there, in `signature`.
    """

    names: tuple[str, ...]
    of_function: Ints
    version: Ints
    version_file: Ints
    version_build: Ints
    """Build that first had this content."""
    signature: tuple[str, ...]


def contents(world: ProfileWorld, layout: Addresses, programs: ProgramArrays, builds: Builds) -> Files:
    """Return which content each file has in each build.

    Parameters
    ----------
    world : releases
    layout : images and code
    programs, builds : what each release changed
    """
    known = np.flatnonzero(layout.code.image != layout.generated)
    places = [(int(layout.code.image[f]), layout.code.file[f]) for f in known]
    numbers = {place: i for i, place in enumerate(dict.fromkeys(places))}
    of_function = np.full(layout.code.count, -1)
    of_function[known] = [numbers[place] for place in places]
    build, function = _pairs(layout)
    file = of_function[function]
    touched = np.zeros(len(numbers), np.bool_)
    touched[of_function[_changed(layout, world, programs, builds)]] = True
    old = layout.of_image[layout.image_of_build[build], OLD]
    origin = np.where(touched[file], build, old)
    count = layout.image_of_build.size
    codes, version = np.unique(file * count + origin, return_inverse=True)
    names = tuple(name for _, name in numbers)
    build_names = [*builds.build_id, "daemon"]
    signature = tuple(
        hashlib.blake2b(f"{names[code // count]} {build_names[code % count]}".encode(), digest_size=8).hexdigest()
        for code in codes.tolist()
    )
    return Files(names, of_function, version, codes // count, codes % count, signature)


def symbol_columns(layout: Addresses, files: Files, stored: Bools) -> Columns:
    """Return the columns of table `symbols`, by build and address.

    Parameters
    ----------
    layout : where everything is
    files : contents of source files
    stored : (B,) which builds reached the repository
    """
    build, function = _pairs(layout)
    code = layout.code
    entries = np.flatnonzero(stored[build])
    entries = entries[np.lexsort((layout.function_start[entries], build[entries]))]
    lines = np.diff(code.line_start)[function[entries]]
    pair = np.repeat(entries, lines)
    which = function[pair]
    line = np.arange(pair.size) - np.repeat(np.cumsum(lines) - lines - code.line_start[function[entries]], lines)
    begin = layout.function_start[pair]
    start = begin + layout.line_offset[line]
    return {
        "build": build[pair],
        "start": start,
        "end": start + layout.instructions[line] * INSTRUCTION_BYTES,
        "function": _texts(code.name, which),
        "function_start": begin,
        "file": _texts(files.names, files.of_function[which]),
        "file_hash": _texts(files.signature, files.version[pair]),
        "function_line": code.function_line[which],
        "line": code.line[line],
    }


def source_columns(layout: Addresses, files: Files, stored: Bools) -> Columns:
    """Return the columns of table `sources`: every line of every content that a stored build was made from.

    Parameters
    ----------
    layout, files, stored : as for `symbol_columns`
    """
    code = layout.code
    in_store = stored[_pairs(layout)[0]]
    versions = np.unique(files.version[in_store])
    last = np.zeros(len(files.names), np.int64)
    known = np.flatnonzero(files.of_function >= 0)
    ends = code.line[code.line_start[1:] - 1]
    np.maximum.at(last, files.of_function[known], ends[known] + 1)
    length = last[files.version_file[versions]]
    begin = np.cumsum(length) - length
    words, header = _vocabulary(code.name)
    text = np.repeat(np.full(versions.size, _BLANK), length)
    line = np.arange(text.size) - np.repeat(begin, length) + 1
    text[line <= len(_OPENING)] = line[line <= len(_OPENING)] - 1
    slot, what = _lines_of(layout, files, versions, begin)
    text[slot] = header + code.count + what % (len(words) - header - code.count)
    first, owner = _heads_of(layout, files, versions, begin)
    text[first] = header + owner
    text[first + (ends - code.function_line)[owner] + 1] = _CLOSING
    version = np.repeat(versions, length)
    return {
        "file": _texts(files.names, files.version_file[version]),
        "file_hash": _texts(files.signature, version),
        "line": line,
        "text": _texts(words, text),
    }


def _vocabulary(functions: tuple[str, ...]) -> tuple[list[str], int]:
    """Return every line there is: opening ones, the end of a function, heads of functions, statements; and where the
    heads begin."""
    statements = [
        form.format(a=a, b=b, verb=verb) for form in _STATEMENTS for verb in _VERBS for a in _NOUNS for b in _NOUNS[:4]
    ]
    heads = [f"Status {name}(Context* context) {{" for name in functions]
    return [*_OPENING, "}", *heads, *statements], len(_OPENING) + 1


def _lines_of(layout: Addresses, files: Files, versions: Ints, begin: Ints) -> tuple[Ints, Ints]:
    """Return the rows of all lines with code, and a number that the text of each follows from."""
    code = layout.code
    version, function = _version_functions(layout, files, versions)
    lines = np.diff(code.line_start)[function]
    line = np.arange(int(lines.sum())) - np.repeat(np.cumsum(lines) - lines - code.line_start[function], lines)
    rows = np.repeat(begin[version], lines) + code.line[line] - 1
    origin = files.version_build[versions[version]]
    what = mixed(
        np.repeat(mixed(code.key[function], origin.astype(np.uint64)), lines), code.line[line].astype(np.uint64)
    )
    return rows, (what >> np.uint64(1)).astype(np.int64)


def _heads_of(layout: Addresses, files: Files, versions: Ints, begin: Ints) -> tuple[Ints, Ints]:
    """Return the rows on which functions begin, and the functions."""
    version, function = _version_functions(layout, files, versions)
    return begin[version] + layout.code.function_line[function] - 1, function


def _version_functions(layout: Addresses, files: Files, versions: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of a content, by its place in `versions`, and a function that stands in it."""
    _, function = _pairs(layout)
    pairs = np.unique(files.version * layout.code.count + function)
    version, function = np.divmod(pairs, layout.code.count)
    place = np.searchsorted(versions, version)
    known = (place < versions.size) & (versions[np.minimum(place, versions.size - 1)] == version)
    return place[known], function[known]


def _pairs(layout: Addresses) -> tuple[Ints, Ints]:
    """Return build and function of every entry of `Addresses.function_start`."""
    counts = np.diff(layout.build_start)
    build = np.repeat(np.arange(counts.size), counts)
    return build, np.arange(build.size) - np.repeat(
        layout.build_start[:-1] - layout.first[layout.image_of_build], counts
    )


def _changed(layout: Addresses, world: ProfileWorld, programs: ProgramArrays, builds: Builds) -> Ints:
    """Return the functions whose source differs between the old and the new build of their image."""
    own = np.isin(layout.code.image, programs.image_of_program)[: programs.code.count]
    kernel = builds.kernel_factor != 1.0
    return np.flatnonzero(own & changed_functions(world, programs) | kernel)


def _texts(words: tuple[str, ...] | list[str], index: Ints) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.asarray(index, np.int32)), pa.array(list(words), pa.string()))


DAEMON_BUILT_S = -30 * 86400.0
"""When the daemon was built, relative to the start of the horizon."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Everything about the images of a world: programs, builds and addresses, and the tables that follow.

    The daemon's image and its build, which every machine runs, come last.
    """

    world: ProfileWorld
    programs: ProgramArrays
    builds: Builds
    addresses: Addresses

    def build_columns(self) -> Columns:
        """Return the columns of table `builds`, the daemon's build last."""
        builds, compiler = self.builds, self.world.profiling.compiler
        old = compiler.old if compiler else builds.compiler[0]
        identity = hashlib.blake2b(f"{DAEMON} {self.world.seed}".encode(), digest_size=20).hexdigest()
        images = self.addresses.image_of_build
        return {
            "build": np.arange(images.size),
            "build_id": [*builds.build_id, identity],
            "image": [self.addresses.images[image] for image in images],
            "kind": [self.addresses.kinds[image] for image in images],
            "revision": [*builds.revision, "r1000"],
            "compiler": [*builds.compiler, old],
            "builder": [*builds.builder, builds.builder[0]],
            "built_s": np.append(builds.built_s, DAEMON_BUILT_S),
        }

    def symbol_columns(self) -> Columns:
        """Return the columns of table `symbols`, of the builds that reached the repository."""
        files = contents(self.world, self.addresses, self.programs, self.builds)
        return symbol_columns(self.addresses, files, np.append(self.builds.stored, True))

    def source_columns(self) -> Columns:
        """Return the columns of table `sources`: all files that those builds were made from."""
        files = contents(self.world, self.addresses, self.programs, self.builds)
        return source_columns(self.addresses, files, np.append(self.builds.stored, True))

    def trait_columns(self) -> Columns:
        """Return the columns of table `function_traits`; code generated at run time was never in a binary."""
        code = self.addresses.code
        known = np.flatnonzero(code.image != self.addresses.generated)
        images = pa.array([self.addresses.images[image] for image in code.image[known]], pa.string())
        return {
            "image": images,
            "function": [code.name[function] for function in known],
            "floating_point": code.floating_point[known],
        }


def lay_out(world: ProfileWorld, programs: ProgramArrays, builds: Builds) -> Layout:
    """Return the images of a world.

    Parameters
    ----------
    world : seed, and the compiler in use at first
    programs, builds : what was built from what
    """
    return Layout(world, programs, builds, lay_out_images(world, programs, builds))
