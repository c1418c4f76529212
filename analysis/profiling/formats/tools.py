"""Files of other formats as text, by the tools of this machine that read them."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from analysis.tables.bytes import LARGEST_BYTES
from analysis.tables.faults import refusal

_LONGEST_S = 600


def text_by(command: Sequence[str], data: bytes, name: str) -> bytes:
    """Return what a command prints of a file.

    Parameters
    ----------
    command : words, after which the path of a file with the data is put
    data : the file's bytes
    name : of the file, for faults

    Raises
    ------
    FileError
        If the command fails, takes over ten minutes, or prints over 512 MiB.

    Examples
    --------
    >>> text_by(["cat"], b"main;f 3", "a.folded")
    b'main;f 3'
    """
    tool = " ".join((Path(command[0]).name, command[1])) if len(command) > 1 else Path(command[0]).name
    with tempfile.TemporaryDirectory(prefix="wsc-profile-") as folder:
        file, text = Path(folder, "recorded.jfr"), Path(folder, "text")  # jfr reads no other name
        file.write_bytes(data)
        with text.open("wb") as out:
            try:
                done = subprocess.run(
                    [*command, str(file)],
                    stdout=out,
                    stderr=subprocess.PIPE,
                    stdin=subprocess.DEVNULL,
                    timeout=_LONGEST_S,
                    check=False,
                    env={**os.environ, "LC_ALL": "C.UTF-8", "PERF_PAGER": "cat", "DEBUGINFOD_URLS": ""},
                )
            except subprocess.TimeoutExpired:
                raise refusal(name, "file", f"should be read by {tool} in {_LONGEST_S} s", "more") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").split("\n")
            told = next((line.strip() for line in lines if line.strip()), str(done.returncode))
            raise refusal(name, "file", f"should be read by {tool}", told)
        if text.stat().st_size > LARGEST_BYTES:
            raise refusal(name, "file", f"should be at most {LARGEST_BYTES} bytes of {tool}", "more")
        return text.read_bytes()
