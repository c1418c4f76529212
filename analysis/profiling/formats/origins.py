"""Which machine and which service a profile is of, where its label or its file's name says so."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

from analysis.profiling.formats.foreign import ForeignProfile, Origin
from analysis.profiling.query import LABEL, is_label
from analysis.tables.faults import refusal
from models.errors import InputError

_PLACE = "{}"
_ENDS = (".gz", ".zst", ".pb", ".pprof", ".prof", ".txt", ".folded", ".json")


def reader_of(source: str) -> Callable[[ForeignProfile, Origin], str]:
    """Return what reads a name from a profile and one of its origins.

    Parameters
    ----------
    source : `label.NAME`; `file`, the file's name without its ending; or a pattern of file names in which `{}` stands
        for what is wanted and `*` for anything, such as ``{}-*.pb.gz``

    Raises
    ------
    ValueError
        If it is none of these.

    Examples
    --------
    >>> profile = ForeignProfile((), name="profiles/web7-0925.pb.gz")
    >>> reader_of("{}-*.pb.gz")(profile, Origin()), reader_of("file")(profile, Origin())
    ('web7', 'web7-0925')
    >>> origin = Origin(labels=(("pod", "web-1"),))
    >>> reader_of("label.pod")(replace(profile, origins=(origin,)), origin)
    'web-1'
    """
    if is_label(source):
        key = source.removeprefix(LABEL)
        return lambda profile, origin: _labelled(profile, origin, key)
    if source == "file":
        return lambda profile, _: _stem(PurePath(profile.name).name)
    if source.count(_PLACE) != 1:
        example = "'{}-*.pb.gz'"
        raise InputError(f"should be label.NAME, file or a pattern of file names with one {{}}, such as {example}")
    before, after = (".*".join(map(re.escape, part.split("*"))) for part in source.split(_PLACE))
    pattern = re.compile(f"{before}(.+?){after}")
    return lambda profile, _: _matched(profile, pattern, source)


def located(
    profile: ForeignProfile,
    machine: Callable[[ForeignProfile, Origin], str] | None,
    service: Callable[[ForeignProfile, Origin], str] | None,
) -> ForeignProfile:
    """Return a profile whose origins say another machine or service (application); where nothing is said, as before.

    Parameters
    ----------
    profile : the file
    machine, service : as `reader_of` returns them; None: as the file says

    Raises
    ------
    FileError
        If the file has no such label, or its name does not match.

    Examples
    --------
    >>> located(ForeignProfile((), name="web7.pb"), reader_of("file"), None).origins[0].machine
    'web7'
    """
    origins = tuple(
        origin._replace(
            machine=(machine(profile, origin) if machine else "") or origin.machine,
            application=(service(profile, origin) if service else "") or origin.application,
        )
        for origin in profile.origins
    )
    return replace(profile, origins=origins)


def _labelled(profile: ForeignProfile, origin: Origin, key: str) -> str:
    known = sorted({name for each in profile.origins for name, _ in each.labels})
    if key not in known:
        raise refusal(profile.name, "labels", f"should have {key}", ", ".join(known) or "none")
    return dict(origin.labels).get(key, "")


def _matched(profile: ForeignProfile, pattern: re.Pattern[str], source: str) -> str:
    name = PurePath(profile.name).name
    match = pattern.fullmatch(name)
    if match is None:
        raise refusal(profile.name, "name", f"should match {source}", name)
    return match[1]


def _stem(name: str) -> str:
    while name.endswith(_ENDS) and name.count("."):
        name = name.rpartition(".")[0]
    return name
