"""The command `wsc serve`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import guard
from scenarios.files.options import refuse


@guard
def serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a profiled run, or of imported profiles.")],
    *,
    port: Annotated[str, typer.Option(metavar="N", help="Port on this machine; 0 takes a free one.")] = "8000",
) -> None:
    """Show a profile in a browser: queries, call graphs, flame graphs, sources; read-only, to this machine alone."""
    if not port.isdigit():
        refuse("--port", "should be a whole number", port)
    from scenarios.web import server

    server.serve(run, int(port))
