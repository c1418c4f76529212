"""Provenance: which source files and which versions made a run."""

import platform
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

import models
import sim

DISTRIBUTIONS = ("wsc-testbed", "numpy", "numba", "pyarrow")
"""What, beside Python, decides a run's last bit: the testbed itself, and the libraries that its numbers go through."""


def versions() -> dict[str, str]:
    """Return the versions of Python, of the testbed and of the libraries that decide what a run holds.

    Examples
    --------
    >>> list(versions())
    ['python', 'wsc-testbed', 'numpy', 'numba', 'pyarrow']
    """
    return {"python": platform.python_version()} | {name: _version(name) for name in DISTRIBUTIONS}


def source_digest(*packages: ModuleType) -> str:
    """Return the digest of the source files of packages; of `models` and `sim`, which decide a run, if none is said.

    Examples
    --------
    >>> source_digest() == source_digest(models, sim), len(source_digest())
    (True, 32)
    """
    digest = blake2b(digest_size=16)
    for package in packages or (models, sim):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{package.__name__}/{file.relative_to(folder).as_posix()} {file_digest(file)}\n".encode())
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
