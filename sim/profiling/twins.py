"""Twins of a profiled fleet: the feature nowhere and everywhere, and hardware under trial nowhere and everywhere.

They share placement, churn, noise and the draws of requests with the recorded fleet, and are written as ``truth_``
tables. With the hardware that is under trial the feature is where the recorded fleet has it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from models.tables import ARMS
from sim.fleet.experiment import Progress, record
from sim.fleet.fleet import NEVER, Arm, Block, Day, Visits, run_arm
from sim.profiling.served import Service, followed
from sim.profiling.setting import Setting
from sim.profiling.trial import prepare_trial
from sim.recorder import TableSummary, TableWriter

_NOBODY = np.empty(0, np.int64)


def served(setting: Setting, blocks: Iterable[Block], visits: Visits, writer: TableWriter | None) -> Iterator[Block]:
    """Yield blocks in which services did what their requests took, and write these requests.

    Parameters
    ----------
    setting : the fleet
    blocks : of one arm of its day
    visits : with which they were simulated
    writer : of table `stay_requests`; None: it is not wanted

    Examples
    --------
    >>> from sim.profiling.served import example
    >>> made = Setting.of(example())
    >>> nobody = Visits(_NOBODY, _NOBODY, made.factors)
    >>> blocks = served(made, run_arm(made.day, made.arm, visits=nobody), nobody, None)
    >>> [block.machines for block in blocks]
    [slice(0, 16, None)]
    """
    service = Service(setting.world, setting.day)
    for block in blocks:
        changed, requests = service.serve(block, visits)
        if writer is not None:
            writer.append(requests)
        yield changed


def write_twins(
    setting: Setting, directory: Path, threads: int | None = None, progress: Progress = lambda _what, _share: None
) -> list[TableSummary]:
    """Simulate a profiled fleet's twins and write their tables; none of a fleet without feature and trial.

    Parameters
    ----------
    setting : the recorded fleet
    directory : an existing directory
    threads : at most this many; results do not depend on it
    progress : called with what is being done and the share of it that is done

    Examples
    --------
    >>> import tempfile
    >>> from models.fleet.served import HardwareTrial
    >>> from sim.profiling.served import example
    >>> asked = replace(example(), trial=HardwareTrial({"haswell_2698v3": "skylake_6148"}, machines=3))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     made = write_twins(Setting.of(asked), Path(directory))
    >>> sorted(each.table for each in made if each.table.endswith("counters"))
    ['truth_trial_everywhere_counters', 'truth_trial_nowhere_counters']
    """
    written = list[TableSummary]()
    for prefix, made in _twins(setting).items():
        fleet, visits = made(), Visits(_NOBODY, _NOBODY, setting.factors)
        blocks: Iterable[Block] = run_arm(fleet.day, fleet.arm, threads, visits=visits)
        if setting.world.served:
            blocks = served(fleet, blocks, visits, None)
        what = f"simulating {prefix.removeprefix('truth_').rstrip('_')}"
        written += record(fleet.day, blocks, directory, prefix, progress=_told(progress, what))
    return written


def _told(progress: Progress, what: str) -> Callable[[float], None]:
    return lambda share: progress(what, share)


def _twins(setting: Setting) -> dict[str, Callable[[], Setting]]:
    """Return how each twin is made, by the prefix of its tables."""
    made = dict[str, Callable[[], Setting]]()
    if setting.world.feature is not None:
        for name, epoch in zip(ARMS, (NEVER, 0), strict=True):
            made[f"truth_{name}_"] = _of_feature(setting, epoch)
    if setting.world.trial is not None:
        nowhere, everywhere = ARMS
        made[f"truth_trial_{nowhere}_"] = lambda: _of_day(setting, prepare_trial(setting.world, "nowhere"))
        made[f"truth_trial_{everywhere}_"] = lambda: _of_day(setting, prepare_trial(setting.world, "everywhere"))
    return made


def _of_feature(setting: Setting, epoch: int) -> Callable[[], Setting]:
    arm = Arm(np.full(setting.day.machines.count, epoch), setting.arm.stay_from)
    return lambda: replace(setting, arm=arm)


def _of_day(setting: Setting, day: Day) -> Setting:
    return replace(setting, day=followed(setting.world, day))
