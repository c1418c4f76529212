import http.client
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from analysis.profiling.storage import ProfileError
from scenarios.files.faults import FaultsError
from scenarios.web.server import listen, serve
from tests.helpers.small_profile import write

SERVE = "import sys; from pathlib import Path; from scenarios.web.server import serve; serve(Path(sys.argv[1]), 0)"


def test_a_taken_port_is_said_before_anything_is_read(tmp_path):
    with listen(0) as taken, pytest.raises(FaultsError, match="--port: is taken by another program, got "):
        serve(tmp_path / "nowhere", taken.getsockname()[1])


@pytest.mark.parametrize("port", [-1, 65536, 10**30])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(FaultsError, match="should be 0 to 65535"):
        listen(port)


def test_a_folder_that_is_no_profile_is_said_and_the_port_given_back(tmp_path):
    with pytest.raises(ProfileError, match="nowhere"):
        serve(tmp_path / "nowhere", 0)
    with pytest.raises(ProfileError):
        serve(tmp_path, 0)


def test_only_this_machine_can_reach_the_server():
    with listen(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        assert listening.family == socket.AF_INET


def test_pages_are_served_until_ctrl_c_which_ends_cleanly(tmp_path):
    """The address is printed first; a page comes over HTTP; SIGINT ends it without a traceback."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SERVE, str(write(tmp_path / "run"))]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            said = server.stdout.readline()
            assert said.startswith("http://127.0.0.1:")
            port = int(said.split("/")[2].split(":")[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", "/query.json?top=1")
            answer = connection.getresponse()
            assert answer.status == 200
            assert json.loads(answer.read())["event"] == "cycles"
            connection.request("HEAD", "/")
            assert connection.getresponse().read() == b""
            connection.close()
        finally:
            server.send_signal(signal.SIGINT)
        _, complaints = server.communicate(timeout=30)
    assert "Traceback" not in complaints
    assert server.returncode == 0
