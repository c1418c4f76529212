"""A worker reads a request, burns what it asks for and says how much that was."""

import os
import socket
import time

import pytest

from scenarios.live.worker import MOST_CPU_S, answer, burn, demand, spin


@pytest.mark.parametrize(
    ("text", "demand_s"),
    [
        ("GET /?cpu_s=0.25 HTTP/1.1\r\nHost: a\r\n\r\n", 0.25),
        ("GET /any/path?x=1&cpu_s=1e-3 HTTP/1.0\r\n\r\n", 0.001),
        (f"GET /?cpu_s={MOST_CPU_S} HTTP/1.1\r\n\r\n", MOST_CPU_S),
        ("GET /?cpu_s=0 HTTP/1.1\r\n\r\n", 0.0),
        ("GET / HTTP/1.1\r\n\r\n", None),
        ("POST /?cpu_s=1 HTTP/1.1\r\n\r\n", None),
        ("GET /?cpu_s=1 HTTP/2\r\n\r\n", None),
        ("GET /?cpu_s=-1 HTTP/1.1\r\n\r\n", None),
        ("GET /?cpu_s=inf HTTP/1.1\r\n\r\n", None),
        ("GET /?cpu_s=nan HTTP/1.1\r\n\r\n", None),
        ("GET /?cpu_s=soon HTTP/1.1\r\n\r\n", None),
        (f"GET /?cpu_s={MOST_CPU_S + 1} HTTP/1.1\r\n\r\n", None),
        ("GET http://[/?cpu_s=1 HTTP/1.1\r\n\r\n", None),
        ("nonsense\r\n\r\n", None),
        ("", None),
    ],
)
def test_a_request_asks_for_cpu_seconds_or_is_none(text, demand_s):
    assert demand(text.encode()) == demand_s


def test_bytes_that_are_no_text_are_no_request():
    assert demand(b"\xff\xfe GET /?cpu_s=1 HTTP/1.1") is None


def test_what_is_burnt_is_cpu_time_of_this_thread():
    begin_s = time.thread_time()
    until_s = burn(begin_s + 0.02)
    assert begin_s + 0.02 <= until_s <= time.thread_time()
    assert burn(0.0) >= until_s


def test_a_spin_is_a_share_and_stays_on_its_cpu():
    allowed = os.sched_getaffinity(0)
    try:
        assert 0 < spin(max(allowed)) <= 1.01
        assert os.sched_getaffinity(0) == {max(allowed)}
    finally:
        os.sched_setaffinity(0, allowed)


def answered(*pieces, begin_s=None):
    """What the worker answers to a text that comes in pieces."""
    here, there = socket.socketpair()
    with here:
        for piece in pieces:
            here.sendall(piece)
        here.shutdown(socket.SHUT_WR)
        answer(there, time.thread_time() if begin_s is None else begin_s)
        return b"".join(iter(lambda: here.recv(4096), b""))


def test_the_answer_says_what_was_burnt_and_ends_the_connection():
    head, _, body = answered(b"GET /?cpu_s=0.01 HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert float(body) >= 0.01


def test_a_request_may_come_in_pieces():
    assert answered(b"GET /?cpu_s=0", b" HTTP/1.1\r", b"\n\r\n").startswith(b"HTTP/1.1 200 OK")


def test_what_was_spent_since_the_request_was_taken_counts():
    assert float(answered(b"GET /?cpu_s=0.01 HTTP/1.1\r\n\r\n", begin_s=time.thread_time() - 9).split()[-1]) >= 9


def test_a_bad_request_is_told_so():
    assert answered(b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 Bad Request")
    assert answered(b"x" * 8192).startswith(b"HTTP/1.1 400 Bad Request")


def test_who_says_nothing_is_not_answered():
    assert answered(b"") == b""
    assert answered(b"GET /?cpu_s=0 HT") == b""
