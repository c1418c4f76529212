"""The pages of `wsc serve` in headless Chromium: of RUN, or of a small profile without it.

Needs Node.js with npm, which gives playwright-core, and Chromium: /usr/bin/chromium, or where CHROMIUM says.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import small_profile

HERE = Path(__file__).resolve().parent


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else small_profile.write(folder / "profile")
        for name in ("package.json", "package-lock.json", "check.mjs"):
            shutil.copy(HERE / name, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True)
        wsc = Path(sys.executable).with_name("wsc")
        server = subprocess.Popen([wsc, "serve", run, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            url = next(word for word in server.stdout.readline().split() if word.startswith("http://"))
            done = subprocess.run(["node", "check.mjs", url, *sys.argv[2:]], cwd=folder, check=False)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
