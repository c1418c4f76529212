"""The pages of `wsc serve`, and reports, in headless Chromium: of RUN, or of small runs without it.

Needs Node.js with npm, which gives playwright-core, and Chromium: /usr/bin/chromium, or where CHROMIUM says.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from scenarios.commands.app import app
from tests.helpers import report_pages, small_profile
from tests.helpers.one_compiles import take_turns

HERE = Path(__file__).resolve().parent
WSC = Path(sys.executable).with_name("wsc")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("run", type=Path, nargs="?", help="a run directory with profiles")
    arguments.add_argument("pictures", type=Path, nargs="?", help="folder for screenshots")
    options = arguments.parse_args()
    given = [options.run.resolve()] if options.run else []
    pictures = [options.pictures.resolve()] if options.pictures else []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("package.json", "package-lock.json", "check.mjs", "report.mjs"):
            shutil.copy(HERE / name, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True)
        failed = [serve(folder, given, pictures), reports(folder, given, pictures)]
    sys.exit(any(failed))


def serve(folder, given, pictures):
    """Look at the pages that `wsc serve` gives."""
    run = given[0] if given else small_profile.write(folder / "profile")
    server = subprocess.Popen([WSC, "serve", run, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        url = next(word for word in server.stdout.readline().split() if word.startswith("http://"))
        return subprocess.run(["node", "check.mjs", url, *pictures], cwd=folder, check=False).returncode
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=30)


def reports(folder, given, pictures):
    """Look at the reports of a run of every kind, and of all these runs together; tests may compile meanwhile."""
    take_turns()
    made = given or [report_pages.made(name, folder / "runs").path for name in report_pages.KINDS]
    whole = [] if given else [folder / "runs"]
    for each in (*made, *whole):
        page = folder / f"{each.name}.html"
        told = CliRunner().invoke(app, ["report", str(each), "--out", str(page)], catch_exceptions=False)
        if told.exit_code:
            sys.exit(told.output)
    pages = sorted(file.name for file in folder.glob("*.html"))
    shown = ("--pictures", *pictures) if pictures else ()
    return subprocess.run(["node", "report.mjs", *pages, *shown], cwd=folder, check=False).returncode


if __name__ == "__main__":
    main()
