"""The wheel, installed into an environment of its own, used from a folder outside of the checkout."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
UV = Path(sys.executable).with_name("uv")
NAMES = ("scenarios", "models", "sim")


def main():
    """Build, install, and do what a newcomer does."""
    with tempfile.TemporaryDirectory(prefix="wsc-wheel-") as name:
        folder = Path(name)
        ran(sys.executable, *PIP, "wheel", "-q", "--no-deps", "-w", folder, ROOT, folder=folder)
        (wheel,) = folder.glob("*.whl")
        environment, elsewhere = folder / "environment", folder / "elsewhere"
        venv.create(environment)
        python, wsc = environment / "bin/python", environment / "bin/wsc"
        install(python, wheel, folder)
        elsewhere.mkdir()
        shutil.copy(ROOT / "docs/examples/stacks.folded", elsewhere)
        check(python, wsc, elsewhere)
        shadowed(python, wsc, folder / "shadowed")
    print("the wheel works outside of the checkout")


def install(python, wheel, folder):
    """Install the wheel and what it needs: with uv, as in the Makefile, and with pip where uv cannot."""
    what = ("-q", "-c", ROOT / "constraints.txt", wheel)
    uv = (UV, "pip", "install", "--python", python, "--system-certs", *what)
    done = UV.exists() and subprocess.run(uv, cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
    if not done or done.returncode:
        ran(sys.executable, *PIP, "--python", python, "install", "--no-compile", *what, folder=folder)


def check(python, wsc, folder):
    """Run, report, reproduce a row, import a profile and serve it."""
    place = ran(python, "-c", "import wsc; print(wsc.__file__)", folder=folder)
    assert "site-packages" in place, place
    assert ran(wsc, "--version", folder=folder).startswith("wsc ")
    ran(wsc, "run", "queue_small", folder=folder)
    (run,) = (folder / "runs").glob("queue_small-*")
    ran(wsc, "report", run, folder=folder)
    assert (run / "report.html").is_file()
    ran(wsc, "reproduce", "wsmeter/table2", folder=folder)
    ran(wsc, "profile", "import", "stacks.folded", "--out", "profile", folder=folder)
    server = subprocess.Popen(
        [wsc, "serve", "profile", "--port", "0"], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    try:
        url = next(word for word in server.stdout.readline().split() if word.startswith("http://"))
        with urlopen(url) as page:
            assert b"deflate" in page.read()
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            raise


def shadowed(python, wsc, folder):
    """See that own modules of our names do not hinder the command, and are named where they hinder Python."""
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text("")
    ran(wsc, "scenarios", folder=folder)
    done = subprocess.run(
        [python, "-c", "import wsc"], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode, "somebody's own modules were not noticed"
    assert f"{folder}/" in done.stderr, done.stderr
    assert "stands in the way of our package" in done.stderr, done.stderr


PIP = ("-m", "pip", "--disable-pip-version-check")


def ran(*words, folder):
    """What a command prints; one that fails ends everything."""
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
