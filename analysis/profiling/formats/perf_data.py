"""`perf.data` of Linux, read through `perf script` where perf is there."""

import shutil

from analysis.profiling.formats.foreign import ForeignProfile
from analysis.profiling.formats.perf_script import read_perf_script
from analysis.profiling.formats.tools import text_by
from analysis.tables.faults import refusal

_MAGIC = (b"PERFILE2", b"2ELIFREP")


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
    return read_perf_script(text_by([perf, "script", "--header", "-i"], data, name), name)
