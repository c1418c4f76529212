"""Search of a flame graph: what goes through functions with a text in their names, whether they are drawn or not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling.query import Query
from scenarios.views.conclusion import Payload
from scenarios.web.calls import ROOTS
from scenarios.web.listing import both
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, gather, read
from scenarios.web.repository import function_links
from scenarios.web.rooted import every_root, rooted_paths
from scenarios.web.site import ProfileSite

MOST_LISTED = 200
"""Functions that are listed beside a drawing unless more are wanted, by their own value or with callees."""


@dataclass(frozen=True, slots=True)
class Search:
    """What goes through functions, or root frames, with a text in their names; each sample counts once."""

    text: str
    value: int
    total: int
    """Value of all samples with stacks."""
    functions: pd.DataFrame
    """All functions that match: function, value, own, share; the greatest first."""

    @property
    def sentence(self) -> str:
        """How many functions match, and what part of all goes through them."""
        share = self.value / self.total if self.total else 0.0
        count = len(self.functions)
        return f"{count:,} function{' matches' if count == 1 else 's match'} “{self.text}”: {share:.2%} of all."


def search(site: ProfileSite, query: Query, text: str) -> Search:
    """Return what goes through functions with a text in their names, in any case.

    Parameters
    ----------
    site, query : asked; a dimension of processes among its keys has the names of root frames
    text : a part of a name
    """
    paths = rooted_paths(site.database, [query], every_root(site.database, query))
    (events,) = paths.events
    matching = np.array([text.lower() in name.lower() for name in paths.frames.names], dtype=np.bool_)
    functions, total = paths.frames.functions(events), int(events.sum())
    functions = functions.assign(share=[int(value) / total for value in functions["value"]])
    value = int(events[paths.frames.having(matching)].sum())
    return Search(text, value, total, functions[containing(functions, text)])


def containing(functions: pd.DataFrame, text: str) -> pd.Series:
    """Return which rows' functions have a text in their names, in any case.

    Examples
    --------
    >>> containing(pd.DataFrame({"function": ["memcpy", "main"]}), "MEM").tolist()
    [True, False]
    """
    lower = text.lower()
    return functions["function"].map(lambda name: lower in str(name).lower()).astype(bool)


def largest(functions: pd.DataFrame, count: int) -> list[str]:
    """Return the names of so many functions with the largest values, and of as many with the largest of their own.

    Examples
    --------
    >>> largest(pd.DataFrame({"function": ["f", "g", "h"], "value": [9, 5, 1], "own": [0, 4, 1]}), 1)
    ['f', 'g']
    """
    ordered = (functions.sort_values(order, ascending=False, kind="stable")["function"] for order in ("value", "own"))
    return list(dict.fromkeys(str(name) for names in ordered for name in names.head(count)))


def columns_of(site: ProfileSite, query: Query, functions: pd.DataFrame, names: Sequence[str]) -> Payload:
    """Return what a script knows of functions, column by column: name, own, value, image, file, line, repository.

    Parameters
    ----------
    site, query : asked
    functions : as `Database.inclusive` gives them
    names : which of them, in order; what is none of them, such as a root frame, has values of 0
    """
    values = functions.set_index("function").reindex(list(names), fill_value=0)
    places = [site.places.get(name, ("", "", 0)) for name in names]
    return {
        "name": list(names),
        "own": [int(value) for value in values["own"]],
        "value": [int(value) for value in values["value"]],
        "image": [image for image, _, _ in places],
        "file": [file for _, file, _ in places],
        "line": [line for _, _, line in places],
        "repository": function_links(site, query, list(names)),
    }


def matches_json(site: ProfileSite, pairs: Pairs) -> Payload:
    """Return what a search finds: value, total, functions (how many), and the columns of the largest of them.

    Of a difference that is of B. Each sample counts once, however many frames of its stack match, and whether they are
    large enough to be drawn or not.
    """
    pairs = list(pairs)
    problems = list[str]()
    texts = gather([pair for pair in pairs if pair[0] == "find"], {"find"}, problems).get("find", [])
    if len(texts) != 1:
        problems.append(f"find: should be given once, got {len(texts)}")
    rest, default = [pair for pair in pairs if pair[0] != "find"], site.default(ROOTS, stacks=True)
    if any(name in {"a", "b"} for name, _ in rest):
        request, (_, query), _ = both(site, rest, default, problems)
    else:
        try:
            request = read(rest, default)
        except RefusedError as error:
            raise RefusedError([*problems, *error.problems]) from None
        if problems:
            raise RefusedError(problems)
        query = request.query
    matches = search(site, query, texts[0].strip())
    return {
        "value": matches.value,
        "total": matches.total,
        "functions": len(matches.functions),
        "largest": columns_of(site, query, matches.functions, largest(matches.functions, listed(request))),
    }


def listed(request: PageQuery) -> int:
    """Return how many functions are listed beside a drawing, by each order."""
    return max(MOST_LISTED, request.top)
