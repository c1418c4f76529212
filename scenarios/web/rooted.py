"""Call paths that are drawn: those of one query or of two, below root frames."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.profiling.counted_shares import CountedStacks
from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import drawn_collections
from analysis.profiling.frames import AnyInts
from analysis.profiling.query import Query, QueryError, of_process
from analysis.profiling.shelf import give_back_memory
from models.arrays import Ints, unique_sorted
from scenarios.web.charts import OTHER
from scenarios.web.parameters import Restrictions
from scenarios.web.tree import Amounts, PathFrames

_MOST_ROOTS = 20
_TRIES = 3
"""How often paths are read if files of the profile change meanwhile."""


@dataclass(frozen=True, slots=True, eq=False)
class RootedPaths:
    """P call paths below root frames, those of a stack each, and what each of Q queries has of them."""

    queries: Sequence[Query]
    stack: Ints
    """(P,) number of the stack, rising."""
    root: AnyInts
    """(P,) place among the root frames."""
    frames: PathFrames
    """With root frames, if there are any."""
    events: list[Amounts]
    """(Q) times (P,)."""
    samples: list[CountedStacks]
    """(Q,) none where no visits were drawn at random, so that nothing has an interval."""

    def bare(self) -> "RootedPaths":
        """Return them without what only intervals rest on, which is a fifth of the memory of many call paths."""
        nothing = np.zeros(0, dtype=np.int32)
        return replace(self, stack=nothing.astype(np.int64), root=nothing, samples=[])


def rooted_paths(database: Database, queries: Sequence[Query], roots: Sequence[Restrictions] = ()) -> RootedPaths:
    """Return the call paths of queries, each below the root frame of its process.

    Parameters
    ----------
    database : asked
    queries : one, or two of one event
    roots : as of `roots_of`; what none of them has is below one frame together; none: no root frames

    Raises
    ------
    QueryError, ProfileError
        As `Database.stacks` does, and if files of the profile change again and again meanwhile.
    """
    for _ in range(_TRIES):
        state = database.identity
        paths = _rooted_paths(database, queries, roots)
        if database.identity == state:
            return paths if drawn_collections(database) else paths.bare()
    raise QueryError("the profile's files change while they are read; ask again")


def _rooted_paths(database: Database, queries: Sequence[Query], roots: Sequence[Restrictions]) -> RootedPaths:
    """Return the call paths of queries, from several answers."""
    names = [value for ((_, (value,)),) in roots]
    by = (roots[0][0][0],) if roots else ()
    stacks = [CountedStacks.of(database, replace(query, by=by), names) for query in queries]
    stack, root, events = _side_by_side([own.sums() for own in stacks], len(names) + 1)
    stacks = [own.summed() for own in stacks]
    give_back_memory()
    new = np.append(True, stack[1:] != stack[:-1])[: len(stack)]
    frames = PathFrames(*database.frames_on(stack[new], 1 if roots else 0))
    frames = frames.at(np.cumsum(new, dtype=np.int32) - 1)
    if roots:
        frames = frames.below([*names, OTHER], root)
    give_back_memory()
    return RootedPaths(queries, stack, root, frames, events, stacks)


def _side_by_side(sums: Sequence[tuple[Ints, AnyInts, Amounts]], width: int) -> tuple[Ints, AnyInts, list[Amounts]]:
    """Return (P,) the stacks and root frames that any query has, in their order, and what each query has of them.

    Parameters
    ----------
    sums : of each query, as of `CountedStacks.sums`
    width : root frames that there may be
    """
    if len(sums) == 1:
        return *sums[0][:2], [sums[0][2]]
    pairs = [stack * width + root for stack, root, _ in sums]
    every = unique_sorted(np.concatenate(pairs))
    kind = np.result_type(*(value for _, _, value in sums))
    events = [np.zeros(len(every), dtype=kind) for _ in sums]
    for into, own, (_, _, value) in zip(events, pairs, sums, strict=True):
        into[np.searchsorted(every, own)] = value
    return every // width, (every % width).astype(np.int32), events


def every_root(database: Database, query: Query) -> list[Restrictions]:
    """Return `roots_of` with all values of the key."""
    return roots_of(database, query, None)


def roots_of(database: Database, query: Query, most: int | None = _MOST_ROOTS) -> list[Restrictions]:
    """Return restrictions to the largest values of the first key that belongs to processes, none without one.

    Parameters
    ----------
    database, query : asked
    most : how many; none: all
    """
    key = next((key for key in query.by if of_process(key)), None)
    if key is None:
        return []
    largest = database.query(replace(query, by=(key,)), most)
    return [((key, (str(value),)),) for value in largest[key]]
