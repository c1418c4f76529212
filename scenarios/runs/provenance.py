"""Provenance: which source files and which versions made a run."""

import platform
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import models
import sim
from scenarios.kinds import KINDS

DISTRIBUTIONS = ("wsc-testbed", "numpy", "numba", "scipy", "pandas", "simpy", "pyarrow")
"""What, beside Python, decides a run's last bit: the testbed itself, and the libraries that its numbers go through."""
CONCLUDING = ("ortools", "scikit-learn", "duckdb")
"""What decides a conclusion besides."""


def versions() -> dict[str, str]:
    """Return the versions of Python, of the testbed and of the libraries that decide what a run holds."""
    return {"python": platform.python_version()} | {name: _version(name) for name in DISTRIBUTIONS}


def source_of_run(kind: str) -> str:
    """Return the digest of all the code that makes the tables of a run of a kind."""
    return source_digest(models, sim, names=KINDS[kind].makers if kind in KINDS else ())


def conclusion_digest() -> str:
    """Return the digest of all of the project's code, and of the versions of the libraries that it concludes with."""
    import analysis
    import scenarios

    libraries = versions() | {name: _version(name) for name in CONCLUDING}
    text = source_digest(models, sim, analysis, scenarios) + repr(sorted(libraries.items()))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def source_digest(*packages: ModuleType, names: Sequence[str] = ()) -> str:
    """Return the digest of the source files of packages and of named modules; of `models` and `sim` if none is said."""
    digest = blake2b(digest_size=16)
    for package in packages or (models, sim):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{package.__name__}/{file.relative_to(folder).as_posix()} {file_digest(file)}\n".encode())
    for name in names:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(name)
        digest.update(f"{name} {file_digest(Path(spec.origin))}\n".encode())
    return digest.hexdigest()


def file_digest(file: Path) -> str:
    """Return the BLAKE2b digest (RFC 7693, 16 bytes) of a file's bytes, read in pieces of 1 MiB.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    digest = blake2b(digest_size=16)
    with file.open("rb") as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
