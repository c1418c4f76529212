"""The command `wsc serve`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import guard
from scenarios.commands.options import written
from scenarios.files.options import whole


@guard
def serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a profiled run, or of imported profiles.")],
    *,
    port: Annotated[
        int, written(partial(whole, least=0, most=65535), "N", help="Port on this machine; 0 takes any free port.")
    ] = 8000,
) -> None:
    """Show a profile in a browser: queries, call graphs, flame graphs, sources; read-only, to this machine alone."""
    from scenarios.web import server

    server.serve(run, port)
