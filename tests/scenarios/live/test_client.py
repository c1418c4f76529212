"""The client sends sessions as they are meant and stamps what comes of them; the server here is a fake."""

import asyncio
import math
import socket
import time

from scenarios.live.client import Session, Stamp, ask, columns, send

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n0\n"


def against(server, sessions, until_s=60.0):
    """What the client stamps of a server that answers by a coroutine; times since it began."""

    async def both():
        async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
            begin_s = time.monotonic()
            stamps = await send(listening.sockets[0].getsockname()[1], sessions, begin_s, until_s)
        return [(each.session, each.demand_s, each.arrival_s - begin_s, each.departure_s - begin_s) for each in stamps]

    return asyncio.run(both())


def answering(answer, heard=None):
    async def server(reader, writer):
        text = await reader.readuntil(b"\r\n\r\n")
        if heard is not None:
            heard.append(text.decode())
        writer.write(answer)
        await writer.drain()
        writer.close()

    return server


def test_a_request_follows_the_answer_before_it_after_the_time_to_think():
    stamps = against(answering(ANSWER), [Session(0.02, (0.1, 0.2, 0.3), (0.05, 0.03))])
    assert [demand_s for _, demand_s, _, _ in stamps] == [0.1, 0.2, 0.3]
    arrivals, departures = [each[2] for each in stamps], [each[3] for each in stamps]
    assert arrivals[0] >= 0.02
    assert arrivals[1] - departures[0] >= 0.049
    assert arrivals[2] - departures[1] >= 0.029
    assert all(arrived <= left for arrived, left in zip(arrivals, departures, strict=True))


def test_sessions_start_when_they_should_whatever_the_others_do_and_come_in_order_of_arrival():
    late, early = Session(0.06, (0.1,), ()), Session(0.0, (0.2, 0.2), (0.3,))
    stamps = against(answering(ANSWER), [late, early])
    assert [session for session, *_ in stamps] == [1, 0, 1]
    assert stamps[1][2] >= 0.06


def test_the_demand_is_asked_for_to_the_last_digit():
    heard = []
    against(answering(ANSWER, heard), [Session(0.0, (0.1 + 0.2,), ())])
    assert heard[0].startswith("GET /?cpu_s=0.30000000000000004 HTTP/1.1\r\n")


def test_what_is_not_answered_well_has_no_departure():
    for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""):
        ((*_, departure_s),) = against(answering(answer), [Session(0.0, (0.1,), ())])
        assert math.isnan(departure_s)


def test_where_nobody_listens_the_answer_is_empty():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert asyncio.run(ask(port, 0.1)) == b""


def test_no_request_starts_after_the_end_but_answers_are_waited_for():
    async def slow(reader, writer):
        await asyncio.sleep(0.1)
        await answering(ANSWER)(reader, writer)

    (stamp,) = against(slow, [Session(0.0, (0.1, 0.1), (0.0,)), Session(0.2, (0.1,), ())], until_s=0.05)
    assert stamp[3] >= 0.1


def test_stamps_become_columns():
    stamps = [Stamp(0, 0.1, 1.0, 2.0), Stamp(3, 0.2, 1.5, 2.5)]
    assert columns(stamps)["session"] == [0, 3]
    assert columns([]) == {"session": [], "demand_s": [], "arrival_s": [], "departure_s": []}
