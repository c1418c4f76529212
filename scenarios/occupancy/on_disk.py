"""`wsc occupancy --on-disk`: which questions can be answered of a log that is read part by part."""

from collections.abc import Sequence
from pathlib import Path

from analysis.occupancy.logs.reading import LogOptions
from scenarios.files.faults import Fault, FaultsError
from scenarios.occupancy.question import OccupancyQuery

WHOLE = "needs the whole log in memory: leave --on-disk away"


def refuse_whole(files: Sequence[Path], query: OccupancyQuery, options: LogOptions) -> None:
    """Raise the faults of what cannot be answered part by part.

    Parameters
    ----------
    files : the one that holds the log
    query : what is asked
    options : what the file does not say itself

    Raises
    ------
    FaultsError
        With all of them.
    """
    rows = query.rows
    asked_of_rows = (
        {}
        if rows is None
        else {
            "--where": rows.where,
            "--from": rows.since,
            "--until": rows.until,
            "--by": rows.by,
            "--hosts": rows.hosts,
        }
    )
    texts: dict[str, str | None] = {
        **query.of_other_servers(),
        "--scalability": "--scalability" if query.scalability else "",
        **asked_of_rows,
        "--priority": options.priority,
        "--format": options.form,
        "--upstream": "--upstream" if options.upstream else "",
        "--zone": options.zone,
        "LOG": " ".join(map(str, files)) if len(files) > 1 else "",
    }
    faults = [Fault(option, 0, 0, "", WHOLE, text) for option, text in texts.items() if text]
    if faults:
        raise FaultsError(faults)
