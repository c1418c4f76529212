"""The pages as an ASGI application: routes, errors as pages, queries in threads."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from analysis.profiling.cancellation import AbandonedError
from analysis.profiling.query import QueryError
from analysis.statistics import NotEnoughDataError
from scenarios.views.conclusion import Payload
from scenarios.web import (
    annotation,
    calls,
    choices,
    exports,
    findings,
    flames,
    landing,
    listing,
    regressions,
    search,
    watch,
)
from scenarios.web.exports import ExportedFile
from scenarios.web.guard import LOOPBACK, Guard
from scenarios.web.parameters import Pairs, RefusedError, in_seconds
from scenarios.web.site import HERE, ProfileSite, WebPage
from scenarios.web.workers import BusyError, PageWorkers

Build = Callable[[ProfileSite, Pairs], WebPage]
BuildJson = Callable[[ProfileSite, Pairs], Payload]
BuildFile = Callable[[ProfileSite, Pairs], ExportedFile]
Endpoint = Callable[[Request], Awaitable[Response]]

PAGES: Mapping[str, Build] = {
    "/": landing.home,
    "/changes": landing.changes,
    "/query": listing.query,
    "/diff": listing.diff,
    "/callgraph": calls.callgraph,
    "/flame": flames.flamegraph,
    "/flamediff": flames.flamediff,
    "/source": annotation.source,
    "/rollouts": findings.rollouts,
    "/stability": findings.stability,
    choices.PATH: choices.values,
    "/regress": regressions.regress,
    watch.PATH: watch.watch,
    "/questions": findings.questions,
    "/questions/{name}": findings.question,
}
"""Path to what makes its page."""
DATA: Mapping[str, BuildJson] = {
    "/query.json": listing.query_json,
    "/flame.json": flames.flame_json,
    "/flamediff.json": flames.flamediff_json,
    "/found.json": search.matches_json,
}
"""Path to what makes its JSON."""
FILES: Mapping[str, BuildFile] = {
    "/query.csv": exports.csv,
    "/profile.pb.gz": exports.pprof,
    "/profile.folded": exports.folded,
    "/profile.speedscope.json": exports.speedscope,
}
"""Path to what makes a file of it."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ErrorView:
    """What the page of an error shows."""

    problems: list[str]


def application(run: Path, hosts: Collection[str] = LOOPBACK) -> Starlette:
    """Return the pages of one profile.

    Parameters
    ----------
    run : a run directory with profiles, or a folder with their tables
    hosts : names by which a browser may reach the server
    """
    site, workers = ProfileSite(run), PageWorkers()
    routes = [
        *(Route(path, _page(site, workers, build), methods=["GET"]) for path, build in PAGES.items()),
        *(Route(path, _json(site, workers, build), methods=["GET"]) for path, build in DATA.items()),
        *(Route(path, _file(site, workers, build), methods=["GET"]) for path, build in FILES.items()),
        Mount("/static", StaticFiles(directory=HERE / "static", follow_symlink=False)),
    ]

    @asynccontextmanager
    async def closing(_: Starlette) -> AsyncGenerator[None]:
        yield
        await workers.close()
        site.close()

    async def not_found(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return _error(site, [_REASONS.get(status, "This cannot be answered.")], status)

    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={HTTPException: not_found},
        lifespan=closing,
    )


_REASONS = {404: "There is no such page.", 405: "Pages are read, nothing else: GET or HEAD."}
_ABANDONED = 499
"""Status of an answer that nobody waits for; no client sees it."""
_BROKEN = "Something went wrong while this page was made; the server's terminal says more."


def _page(site: ProfileSite, workers: PageWorkers, build: Build) -> Endpoint:
    """Return the endpoint of a page; what it cannot answer becomes a page that says why."""

    def make(request: Request) -> Response:
        page = build(site, _pairs(site, request))
        return HTMLResponse(site.render(page), page.status)

    return _safely(workers, make, lambda problems, status: _error(site, problems, status))


def _json(site: ProfileSite, workers: PageWorkers, build: BuildJson) -> Endpoint:
    """Return the endpoint of JSON."""

    def make(request: Request) -> Response:
        return JSONResponse(build(site, _pairs(site, request)))

    return _safely(workers, make, lambda problems, status: JSONResponse({"problems": problems}, status))


def _file(site: ProfileSite, workers: PageWorkers, build: BuildFile) -> Endpoint:
    """Return the endpoint of a file that is downloaded; what it cannot answer becomes a page that says why."""

    def make(request: Request) -> Response:
        file = build(site, _pairs(site, request))
        name = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in file.stem) + file.suffix
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(file.content, media_type=file.media_type, headers=headers)

    return _safely(workers, make, lambda problems, status: _error(site, problems, status))


def _safely(
    workers: PageWorkers, make: Callable[[Request], Response], refuse: Callable[[list[str], int], Response]
) -> Endpoint:
    """Return an endpoint that runs in a thread once its turn has come and turns every error into a response.

    Requests for the same address at once get one response; what is sent with it depends on nothing but the address.
    """

    def answer(request: Request) -> Response:
        try:
            return make(request)
        except AbandonedError:
            return Response(status_code=_ABANDONED)
        except RefusedError as error:
            return refuse(error.problems, error.status)
        except BusyError as error:
            return refuse([f"{error}. Ask again."], 503)
        except (QueryError, NotEnoughDataError) as error:
            return refuse(str(error).splitlines(), 400)
        except Exception:
            _LOG.exception("%s failed", request.url.path)
            return refuse([_BROKEN], 500)

    async def endpoint(request: Request) -> Response:
        try:
            return await workers.share(str(request.url), lambda: answer(request), lambda: _gone(request))
        except AbandonedError:
            return Response(status_code=_ABANDONED)
        except BusyError as error:
            return _busy(request, f"{error}. Ask again.")

    return endpoint


def _busy(request: Request, problem: str) -> Response:
    """Return that the server is busy: a browser gets a page that fits a phone, without a template."""
    waiting = {"Retry-After": "2"}
    if "text/html" in request.headers.get("accept", ""):
        head = '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Busy</title>'
        return HTMLResponse(f"{head}<p>{escape(problem)}</p></html>\n", 503, waiting)
    return PlainTextResponse(f"{problem}\n", 503, waiting)


async def _gone(request: Request) -> None:
    """Return when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _pairs(site: ProfileSite, request: Request) -> Pairs:
    """Return the parameters of the query, points in time as seconds since the beginning, and of the path."""
    own = [(name, value) for name, value in request.query_params.multi_items() if name != findings.PATH]
    own = in_seconds(own, site.database.origin_s)
    return [*own, *((findings.PATH, str(value)) for value in request.path_params.values())]


def _error(site: ProfileSite, problems: list[str], status: int) -> Response:
    """Return a page that lists what is wrong."""
    page = WebPage("error.html", "This cannot be shown", ErrorView(problems))
    return HTMLResponse(site.render(page), status)
