"""A server under more requests than it can answer, and clients that go away."""

import asyncio
import threading

import duckdb
import pytest

from analysis.profiling.cancellation import AbandonedError, Cancellation, interruptible
from scenarios.web import application as pages_of
from scenarios.web import site
from scenarios.web.workers import BusyError, PageWorkers
from tests.helpers.web_pages import answered, ask, harmless


async def never() -> None:
    await asyncio.Event().wait()


def test_two_hundred_requests_at_once_are_answered_or_refused_and_few_are_worked_on():
    """Work that does not end until all others were answered or refused: two at a time, 198 are refused."""
    ended, together, most = threading.Event(), [], []

    def work():
        together.append(1)
        most.append(len(together))
        ended.wait(30)
        together.pop()
        return "answered"

    async def one(workers, question):
        try:
            return await workers.share(question, work, never)
        except BusyError:
            return "refused"

    async def all_at_once():
        workers = PageWorkers(workers=2, wait_s=0.05, answer_s=60.0)
        asked = [asyncio.ensure_future(one(workers, number)) for number in range(200)]
        while sum(request.done() for request in asked) < 198:
            await asyncio.sleep(0.01)
        ended.set()
        told = await asyncio.gather(*asked)
        assert await one(workers, 0) == "answered"  # Turns that nobody took are given to others.
        return told

    told = asyncio.run(all_at_once())
    assert (told.count("answered"), told.count("refused")) == (2, 198)
    assert max(most) <= 2


def test_two_hundred_who_ask_the_same_at_once_share_one_answer():
    """One who goes away gets none, and does not end it; who asks when it has ended gets a new one."""
    begun, ended = [], threading.Event()

    def work():
        begun.append(1)
        ended.wait(30)
        return f"answer {len(begun)}"

    async def all_at_once():
        workers = PageWorkers(workers=1, wait_s=0.05, answer_s=60.0)
        leaving = asyncio.ensure_future(workers.share("/flame", work, lambda: asyncio.sleep(0)))
        asked = [asyncio.ensure_future(workers.share("/flame", work, never)) for _ in range(200)]
        with pytest.raises(AbandonedError):
            await leaving
        with pytest.raises(BusyError):
            await workers.share("/query", work, never)
        ended.set()
        told = await asyncio.gather(*asked)
        return told, await workers.share("/flame", work, never)

    assert asyncio.run(all_at_once()) == (["answer 1"] * 200, "answer 2")


def test_an_answer_is_given_up_when_all_who_asked_have_gone():
    """And who asks the same then is answered."""

    def endless():
        with duckdb.connect() as connection, interruptible(connection):
            return connection.execute("SELECT sum(sqrt(a.range)) FROM range(1000000) a, range(1000000) b").fetchall()

    async def abandoned():
        workers = PageWorkers(workers=1)
        asked = [workers.share("/flame", endless, lambda: asyncio.sleep(0.05)) for _ in range(9)]
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in told} == {AbandonedError}
        return await workers.share("/flame", lambda: "next", never)

    assert asyncio.run(abandoned()) == "next"


def test_what_breaks_breaks_for_all_who_asked():
    def broken():
        raise ZeroDivisionError

    async def together():
        workers = PageWorkers(workers=1)
        asked = [workers.share("/flame", broken, never) for _ in range(9)]
        return await asyncio.gather(*asked, return_exceptions=True)

    assert {type(each) for each in asyncio.run(together())} == {ZeroDivisionError}


def test_work_that_nobody_waits_for_is_interrupted():
    """A query of a trillion rows ends when its client goes away, and the thread is free for others."""

    def endless():
        with duckdb.connect() as connection, interruptible(connection):
            return connection.execute("SELECT sum(sqrt(a.range)) FROM range(1000000) a, range(1000000) b").fetchall()

    async def abandoned():
        workers = PageWorkers(workers=1)
        with pytest.raises(AbandonedError):
            await workers.share("/flame", endless, lambda: asyncio.sleep(0.05))
        return await workers.share("/query", lambda: "next", never)

    assert asyncio.run(abandoned()) == "next"


def test_work_that_is_not_done_when_the_server_closes_is_interrupted():
    """Its next query would meet a closed database, which ended in a traceback."""
    begun = threading.Event()

    def endless():
        begun.set()
        with duckdb.connect() as connection, interruptible(connection):
            return connection.execute("SELECT sum(sqrt(a.range)) FROM range(1000000) a, range(1000000) b").fetchall()

    async def closed():
        workers = PageWorkers(workers=1)
        asked = asyncio.ensure_future(workers.share("/flame", endless, never))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        await workers.close()
        with pytest.raises(AbandonedError):
            await asked

    asyncio.run(closed())


async def asked(workers, question, work):
    try:
        return await workers.share(question, work, never)
    except BusyError as error:
        return str(error)


def test_while_others_are_refused_a_long_answer_is_refused_too_and_kept_for_who_asks_again():
    """While it is worked out and for a while when it is done; then who asks gets a new one."""
    begun, ended = [], threading.Event()

    def long():
        begun.append(1)
        ended.wait(30)
        return f"answer {len(begun)}"

    async def crowded():
        workers = PageWorkers(workers=1, wait_s=0.05, answer_s=0.1, wanted_s=1.0)
        told = await asyncio.gather(asked(workers, "/flame", long), asked(workers, "/query", long))
        again = asyncio.ensure_future(asked(workers, "/flame", long))
        await asyncio.sleep(0.2)
        ended.set()
        told += [await again, await asked(workers, "/flame", long)]
        await asyncio.sleep(1.2)
        return *told, await asked(workers, "/flame", long)

    first, second, *others = asyncio.run(crowded())
    assert "this answer is not there after 0.1 s" in first
    assert "this one waited 0.05 s" in second
    assert others == ["answer 1", "answer 1", "answer 2"]


def test_a_long_answer_takes_its_time_if_nobody_else_is_refused():
    async def alone():
        return await asked(PageWorkers(workers=1, wait_s=0.05, answer_s=0.01), "/flame", lambda: ended.wait(0.2))

    ended = threading.Event()
    assert asyncio.run(alone()) is False


def test_work_for_those_who_do_not_ask_again_is_interrupted():
    def endless():
        with duckdb.connect() as connection, interruptible(connection):
            return connection.execute("SELECT sum(sqrt(a.range)) FROM range(1000000) a, range(1000000) b").fetchall()

    async def refused():
        workers = PageWorkers(workers=1, wait_s=0.05, answer_s=0.1, wanted_s=0.1)
        told = await asyncio.gather(asked(workers, "/flame", endless), asked(workers, "/query", endless))
        workers.wait_s = 20.0
        return *told, await asked(workers, "/", lambda: "next")

    *both, after = asyncio.run(refused())
    assert all("busy" in told or "waited" in told for told in both)
    assert after == "next"


def test_work_that_was_cancelled_asks_no_further_query():
    cancellation = Cancellation()

    def two_queries():
        cancellation.cancel()
        with duckdb.connect() as connection, interruptible(connection):
            raise AssertionError("asked")

    with pytest.raises(AbandonedError):
        cancellation.run(two_queries)


def test_requests_for_one_address_at_once_get_one_response(small_profile, monkeypatch):
    begun, ended, usual = [], threading.Event(), pages_of.PAGES["/query"]

    def work(site, pairs):
        begun.append(1)
        ended.wait(30)
        return usual(site, pairs)

    monkeypatch.setitem(pages_of.PAGES, "/query", work)
    pages = pages_of.application(small_profile)

    async def at_once():
        asked = [asyncio.ensure_future(answered(pages, "/query?by=application")) for _ in range(9)]
        while not begun:
            await asyncio.sleep(0.01)
        ended.set()
        return await asyncio.gather(*asked)

    first, *others = asyncio.run(at_once())
    assert len(begun) == 1
    assert first.status == 200
    assert others == [first] * 8
    assert "content-security-policy" in first.headers


def test_a_busy_server_says_so(pages, monkeypatch):
    async def busy(*_):
        raise BusyError("so many at once")

    monkeypatch.setattr(pages_of.PageWorkers, "share", busy)
    for path in ("/query", "/query.json"):
        answer = ask(pages, path)
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")
        assert answer.text == "so many at once. Ask again.\n"
    page = harmless(ask(pages, "/query", accept="text/html,*/*;q=0.8"))
    assert ("meta", {"name": "viewport", "content": "width=device-width"}) in page.tags
    assert page.said == ["Busy", "so many at once. Ask again.", "\n"]


def test_tables_of_pages_and_json_are_bounded_in_bytes(pages, monkeypatch):
    whole = ask(pages, "/query?by=function,application,machine,day&top=10000")
    rows = harmless(whole).count("tr")
    monkeypatch.setattr(site, "MOST_BYTES", 20_000)
    cut = ask(pages, "/query?by=function,application,machine,day&top=10000")
    left = rows - harmless(cut).count("tr")
    assert left > 0
    assert f"{left:,} more rows are left out" in cut.text
    monkeypatch.setattr("scenarios.web.listing.MOST_BYTES", 2_000)
    answer = ask(pages, "/query.json?by=function,application,machine,day&top=10000").json()
    assert len(answer["rows"]) + answer["left_out"] == rows - 1
    assert answer["left_out"] > 0
