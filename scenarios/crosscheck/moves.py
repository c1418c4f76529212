"""Is what the profile advises kept? Jobs are really moved to the advised platforms, and the fleet simulated again."""

from collections.abc import Iterator

from analysis.crosscheck.check import Check
from analysis.crosscheck.moves import kept
from scenarios.runs.rundir import Run


def checks(run: Run) -> Iterator[Check]:
    """Yield whether the advice that keeps each platform's misses saves what it promises; it is simulated.

    Parameters
    ----------
    run : a finished run; only one of a profiled fleet on several platforms can be moved

    Examples
    --------
    >>> from pathlib import Path
    >>> list(checks(Run(Path("nowhere"), {"kind": "fleet"})))
    []
    """
    if run.manifest.get("kind") != "profile" or not run.has("samples"):
        return
    from analysis.profiling.affinity.advice import Settings, advise
    from analysis.profiling.affinity.sampled import table_of
    from analysis.profiling.affinity.table import Table
    from analysis.profiling.database import Database
    from scenarios.profiling.affinity_trial import moved

    with Database([run.path]) as database:
        frame = table_of(database)
    if frame["platform"].nunique() < 2 or "misses" not in frame:
        return
    made = moved(run.path, advise(Table.of(frame), settings=Settings(keep_traffic=True)))[0]
    yield kept(float(made["realised"]), float(made["promised"]))
