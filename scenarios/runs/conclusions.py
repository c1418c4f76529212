"""What was concluded of a run is kept in its folder, and told again as long as measuring would conclude the same."""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa

import models
import sim
from models.code.parts import PartError, part
from scenarios.files.schema import AnyScenario
from scenarios.kinds import ANALYSES, KINDS
from scenarios.runs.disk import JsonError, file_digest, json_of, whole
from scenarios.runs.rundir import MANIFEST, Run, make_folder, source_digest, version_of, versions
from scenarios.views.terminal import Progress
from sim.recorder import write_table


class Measured(Protocol):
    """What is concluded of a run: dataclasses of numbers, texts, tables and the like, and the pictures it drew."""

    @property
    def figures(self) -> Sequence[str | Path]:
        """Files of pictures."""


_S = TypeVar("_S", bound=AnyScenario)
_M = TypeVar("_M", bound=Measured)
_T = TypeVar("_T")
_OURS = {"models", "sim", "analysis", "scenarios"}
_FOLDER = "concluded"
CONCLUDING = ("ortools", "scikit-learn", "duckdb")
"""What decides a conclusion besides."""


def kept_conclusion(
    measure: Callable[[_S, Run, Path, Progress], _M],
) -> Callable[[_S, Run, Path, Progress], _M]:
    """Make a lens tell again what it concluded of a run, unless something that decides it is another by now.

    That is: all the project's code, versions of libraries, the scenario with its analyses, the files of somebody's own
    parts, and the run's files; and its pictures must still be there. A conclusion that holds what cannot be kept is
    measured every time.
    """

    @functools.wraps(measure)
    def told(scenario: _S, run: Run, out: Path, progress: Progress) -> _M:
        file = run.path / _FOLDER / f"conclusion-{_digest(measure.__module__, scenario, run)}.json"
        earlier = cast("_M | None", kept_record(file, object))
        with suppress(AttributeError):
            if earlier is not None and all(Path(figure).is_file() for figure in earlier.figures):
                return earlier
        for other in file.parent.glob("conclusion-*.json"):
            other.unlink(missing_ok=True)  # its pictures are about to be drawn over
        conclusion = measure(scenario, run, out, progress)
        with suppress(TypeError):
            keep_record(conclusion, file)
        return conclusion

    return told


def record_file(folder: Path, name: str, question: object) -> Path:
    """Return where a record is kept that was concluded of a profile: apart from what happened, under a digest.

    The digest is of the question, of all the project's code, and of the versions of libraries.

    Parameters
    ----------
    folder : of the run or of the profile
    name : what is concluded
    question : all else that decides the answer, the state of the folder's files too; its repr counts
    """
    digest = blake2b(repr((conclusion_digest(), question)).encode(), digest_size=6).hexdigest()
    return folder / _FOLDER / f"{name}-{digest}.json"


def kept_record(file: Path, kind: type[_T]) -> _T | None:
    """Return the record of a kind that a file holds; None if there is none that can be read."""
    with suppress(OSError, JsonError, ValueError, TypeError, KeyError, AttributeError, ImportError):
        record = _value(json_of(file))
        return record if isinstance(record, kind) else None
    return None


def concluded(run: Path, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Return a table that was concluded of a run: the one that is kept, if this very code made it, or a new one.

    It is kept in the run's folder, apart from what happened, under the digest of all the code and all the libraries.

    Parameters
    ----------
    run : folder of the run
    name : a table of `models.tables`
    make : makes it; called if it is not kept

    Examples
    --------
    >>> import tempfile
    >>> shares = dict.fromkeys(["target_margin", "planned_margin", "margin", "change", "quota_coverage"], 0.5)
    >>> counts = {"round": [1], "machines": [25], "jobs": [9]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = concluded(Path(folder), "rounds", lambda: pd.DataFrame(counts | shares | {"accepted": True}))
    ...     concluded(Path(folder), "rounds", lambda: None).equals(first)
    True
    """
    folder = run / _FOLDER
    file = folder / f"{name}-{conclusion_digest()[:12]}.parquet"
    if file.is_file():
        with suppress(OSError, pa.ArrowException):
            return pd.read_parquet(file)
    table = make()
    make_folder(folder)
    with TemporaryDirectory(dir=folder) as unfinished:
        write_table(Path(unfinished), name, {str(column): table[column] for column in table.columns})
        Path(unfinished, f"{name}.parquet").replace(file)
    for other in set(folder.glob(f"{name}-*.parquet")) - {file}:
        other.unlink(missing_ok=True)
    return pd.read_parquet(file)


def conclusion_digest() -> str:
    """Return the digest of all of the project's code, and of the versions of the libraries that it concludes with."""
    import analysis
    import scenarios

    libraries = versions() | {name: version_of(name) for name in CONCLUDING}
    text = source_digest(models, sim, analysis, scenarios) + repr(sorted(libraries.items()))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _digest(lens: str, scenario: AnyScenario, run: Run) -> str:
    """Return the digest of all that decides what a lens concludes, and of where the run is: its pictures are there."""
    settings = KINDS[scenario.kind].adapter.dump_json(scenario, by_alias=True).decode()
    files = [run.path / MANIFEST, *(file for file, _ in run.files())]
    digests = [(file.relative_to(run.path).as_posix(), file_digest(file)) for file in files if file.is_file()]
    named = KINDS[scenario.kind].parts(scenario).items()
    parts = [_sha256(text, way) for way, text in named]
    return blake2b(
        repr((conclusion_digest(), lens, settings, parts, str(run.path), digests)).encode(), digest_size=6
    ).hexdigest()


def _sha256(text: str, way: str) -> str:
    """Return the digest of a part's file; nothing if it is gone and only what came of it, in the run, is needed."""
    try:
        return part(text).sha256
    except PartError:
        if way.startswith(ANALYSES):
            raise
        return ""


def keep_record(record: object, file: Path) -> None:
    """Keep a dataclass of numbers, texts, tables and the like in a file, all of it or nothing.

    Raises
    ------
    TypeError
        If it holds what cannot be kept.
    """
    text = json.dumps(_json(record))
    make_folder(file.parent)
    with whole(file) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def _json(value: object) -> object:
    """Return a value as JSON holds it, under the name of its form where JSON has none of the kind."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_json(entry) for entry in value]
    for name, form in _FORMS.items():
        if form.fits(value):
            return {name: form.write(value)}
    raise TypeError(f"a {type(value).__name__} is not kept")


def _value(text: object) -> Any:  # noqa: ANN401 - what a file holds is known when it is read
    """Return the value that `_json` wrote."""
    if isinstance(text, list):
        return [_value(entry) for entry in text]
    if not isinstance(text, dict):
        return text
    ((name, content),) = text.items()
    return _FORMS[name].read(content)


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of some types are written, as JSON holds it, and read again."""

    fits: Callable[[Any], bool]
    write: Callable[[Any], object]
    read: Callable[[Any], Any]


def _columns(table: pd.DataFrame) -> object:
    """Return a table by columns, its index first: name, type and values of each."""
    columns = [table.index.to_series(), *(table[name] for name in table.columns)]
    return [[column.name, _type_of(column), _json(column.tolist())] for column in columns]


def _type_of(column: "pd.Series[Any]") -> str:
    if column.dtype.kind not in "biufO" and str(column.dtype) != "str":
        raise TypeError(f"a column of {column.dtype} is not kept")
    return str(column.dtype)


def _table(columns: Any) -> pd.DataFrame:  # noqa: ANN401 - as `_columns` wrote it
    (_, kind, values), *others = columns
    index, plain = pd.Index(_value(values), dtype=kind), pd.RangeIndex(len(values))
    rows = plain if index.equals(plain) else index
    series = [pd.Series(_value(entries), index=rows, dtype=dtype) for _, dtype, entries in others]
    names = [name for name, _, _ in others]
    return pd.concat(series, axis="columns", keys=names) if series else pd.DataFrame(index=rows)


def _is_record(value: object) -> bool:
    """Return whether a value, or a class, has fields: a dataclass or a named tuple."""
    return is_dataclass(value) or (isinstance(value, (tuple, type)) and hasattr(value, "_fields"))


def _fields(record: Any) -> list[str]:  # noqa: ANN401 - a record or its class
    return [field.name for field in fields(record)] if is_dataclass(record) else list(record._fields)


def _written(record: object) -> object:
    kind = type(record)
    return [f"{kind.__module__}:{kind.__qualname__}", [_json(getattr(record, name)) for name in _fields(record)]]


def _record(content: tuple[str, list[object]]) -> Any:  # noqa: ANN401 - of any class with fields
    """Return a record of the project; a class of anything else that a file may name is refused."""
    name, values = content
    module, _, kind = name.partition(":")
    if module.split(".")[0] not in _OURS:
        raise ValueError(f"{name} is not of this project")
    record = getattr(import_module(module), kind)
    if not _is_record(record):
        raise ValueError(f"{name} holds no values")
    return record(**dict(zip(_fields(record), map(_value, values), strict=True)))


_FORMS: Mapping[str, _Form] = {
    "path": _Form(lambda value: isinstance(value, Path), str, Path),
    "table": _Form(lambda value: isinstance(value, pd.DataFrame), _columns, _table),
    "array": _Form(
        lambda value: isinstance(value, np.ndarray),
        lambda array: [str(array.dtype), _json(array.tolist())],
        lambda content: np.array(_value(content[1]), dtype=content[0]),
    ),
    "map": _Form(
        lambda value: isinstance(value, Mapping),
        lambda mapping: [[_json(key), _json(entry)] for key, entry in mapping.items()],
        lambda content: {_value(key): _value(entry) for key, entry in content},
    ),
    "record": _Form(_is_record, _written, _record),
    "tuple": _Form(
        lambda value: isinstance(value, tuple),
        lambda entries: [_json(entry) for entry in entries],
        lambda content: tuple(map(_value, content)),
    ),
}
"""Types that are kept beside those of JSON."""
