"""`perf.data` of Linux, read through `perf script` where perf is there."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from analysis.profiling.formats.foreign import ForeignProfile
from analysis.profiling.formats.perf_script import read_perf_script
from analysis.tables.bytes import LARGEST_BYTES
from analysis.tables.faults import refusal

_MAGIC = (b"PERFILE2", b"2ELIFREP")
_LONGEST_S = 600


def is_perf_data(data: bytes) -> bool:
    """Return whether bytes are those of `perf record`, in either byte order.

    Examples
    --------
    >>> is_perf_data(b"PERFILE2" + bytes(96)), is_perf_data(b"main;f 3")
    (True, False)
    """
    return data.startswith(_MAGIC)


def read_perf_data(data: bytes, name: str = "perf.data") -> ForeignProfile:
    """Read `perf.data` with the `perf` of this machine, which needs the binaries of the recording for symbols.

    Parameters
    ----------
    data : the file's bytes
    name : of the file, for faults

    Raises
    ------
    FileError
        If there is no `perf`, or it cannot read the file, or not in ten minutes.
    """
    perf = shutil.which("perf")
    if perf is None:
        advice = (
            "should be read by perf, which is not here: perf script --header -i FILE > FILE.txt where it was recorded"
        )
        raise refusal(name, "file", advice, "perf.data")
    with tempfile.TemporaryDirectory(prefix="wsc-perf-") as folder:
        file, text = Path(folder, "perf.data"), Path(folder, "perf.txt")
        file.write_bytes(data)
        with text.open("wb") as out:
            try:
                done = subprocess.run(
                    [perf, "script", "--header", "-i", str(file)],
                    stdout=out,
                    stderr=subprocess.PIPE,
                    stdin=subprocess.DEVNULL,
                    timeout=_LONGEST_S,
                    check=False,
                    env={**os.environ, "LC_ALL": "C", "PERF_PAGER": "cat", "DEBUGINFOD_URLS": ""},
                )
            except subprocess.TimeoutExpired:
                raise refusal(name, "file", f"should be read by perf script in {_LONGEST_S} s", "more") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").split("\n")
            told = next((line.strip() for line in lines if line.strip()), str(done.returncode))
            raise refusal(name, "file", "should be read by perf script", told)
        if text.stat().st_size > LARGEST_BYTES:
            raise refusal(name, "file", f"should be at most {LARGEST_BYTES} bytes of perf script", "more")
        return read_perf_script(text.read_bytes(), name)
