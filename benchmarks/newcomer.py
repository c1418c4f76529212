"""A newcomer's path, timed: from nothing to a first figure, and to a first verdict on tables of one's own.

    python benchmarks/newcomer.py

The checkout is cloned, what is not committed included, into a temporary folder; there `make` sets up an environment of
its own, with whatever pip has in its cache, and the commands compile what they need. Times are wall clock; those of
processors are added because other work on the machine lengthens the former.
"""

import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EFFECT = "wsc effect fleet_before.csv fleet_after.csv --jobs fleet_jobs.csv"
STEPS = (
    ("set up", ".", "make .venv/.ready"),
    ("first figure", ".", "wsc run small"),
    ("first own-data verdict", "docs/examples", EFFECT),
    ("the same again", "docs/examples", EFFECT),
    ("the main job", ".", "make demo"),
)


def cloned(folder: Path) -> Path:
    """Return a clone of the checkout with the changes that are not committed."""
    place = folder / "wsc"
    subprocess.run(["git", "clone", "--quiet", ROOT, place], check=True)
    listed = ["git", "ls-files", "-z", "--modified", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            (place / name).write_bytes((ROOT / name).read_bytes())
        else:
            (place / name).unlink(missing_ok=True)
    return place


def timed(folder: Path, command: str, path: str) -> tuple[float, float]:
    """Return wall-clock and processor seconds of a command, which must succeed."""
    began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {name: value for name, value in os.environ.items() if name in {"HOME", "LANG", "SHELL"}} | {"PATH": path}
    subprocess.run(command.split(), cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return time.perf_counter() - began, processor


def main() -> None:
    """Take the steps in a fresh clone and print how long each took, and all up to it."""
    with tempfile.TemporaryDirectory() as folder:
        place = cloned(Path(folder))
        path = f"{place}/.venv/bin:{os.defpath}:/usr/local/bin"
        passed = 0.0
        print(f"{'step':24}  wall, s  processor, s  since the clone, s")
        for name, where, command in STEPS:
            wall, processor = timed(place / where, command, path)
            passed += wall
            print(f"{name:24}  {wall:7.1f}  {processor:12.1f}  {passed:18.1f}")


if __name__ == "__main__":
    main()
