"""A small profile in memory that answers as a database does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pandas as pd

from analysis.profiling.query import Query, QueryError


@dataclass(frozen=True, slots=True, eq=False)
class ProfileTable:
    """A profile as one table: columns event, dimensions, perhaps caller, samples, value.

    Examples
    --------
    >>> rows = pd.DataFrame({"event": "cycles", "function": ["f", "g"], "samples": [1, 3], "value": [10, 30]})
    >>> ProfileTable(rows).query(Query())["function"].tolist()
    ['g', 'f']
    """

    rows: pd.DataFrame
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def query(self, query: Query, top: int | None = None) -> pd.DataFrame:
        """Return samples, value and share by the query's dimensions, largest value first."""
        used = self._restricted(query)
        # Visits without a collection and a machine of their own are of one.
        used = used.assign(**{name: "" for name in ("collection", "machine") if name not in used})
        summed = used.groupby(list(query.by), as_index=False)[["samples", "value"]].sum()
        found = summed.sort_values(["value", *query.by], ascending=[False, *[True] * len(query.by)], kind="stable")
        return found.assign(share=found["value"] / max(int(found["value"].sum()), 1)).head(top or len(found))

    def clustered(self, query: Query, cluster: str = "machine", rows: pd.DataFrame | None = None) -> pd.DataFrame:
        """Return samples and value by the query's dimensions within each cluster, perhaps of some rows alone."""
        table = self.query(Query(query.event, (*query.by, cluster), query.where)).drop(columns="share")
        return table if rows is None else table.merge(rows[list(query.by)], on=list(query.by))

    def clustered_apart(self, query: Query, apart: str, cluster: str = "machine") -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield what `clustered` returns for each value of another dimension."""
        wide = self.clustered(Query(query.event, (apart, *query.by), query.where), cluster)
        for name, part in wide.groupby(apart, sort=True):
            yield str(name), part[part["value"] > 0].drop(columns=apart)

    def callers(self, function: str, query: Query) -> pd.DataFrame:
        """Return caller, samples, value of a function by the query's dimensions; needs the column caller."""
        used = self._restricted(query.restricted("function", function))
        return used.groupby([*query.by, "caller"], as_index=False)[["samples", "value"]].sum()

    def undrawn(self, query: Query) -> str:
        """Return nothing: what is held is taken as drawn."""
        del query
        return ""

    def values(self, name: str, limit: int = 10_000) -> list[str]:
        """Return the values of a dimension as text; none where there is no such column."""
        return sorted(self.rows[name].astype(str).unique())[:limit] if name in self.rows.columns else []

    def events(self) -> list[str]:
        """Return the events that have samples."""
        return sorted(map(str, self.rows["event"].unique()))

    def units(self) -> dict[str, str]:
        """Return what each event counts: nanoseconds of a wait, bytes of a heap, otherwise events."""
        units = {"lock_wait": "nanoseconds", "delay": "microseconds", "cpu_time": "nanoseconds"}
        units |= dict.fromkeys(("heap_bytes", "inuse_space", "alloc_space"), "bytes")
        return {str(name): units.get(str(name), "events") for name in self.rows["event"].unique()}

    def table(self, name: str) -> pd.DataFrame:
        """Return a table as it is.

        Raises
        ------
        QueryError
            If there is no such table.
        """
        if name not in self.tables:
            raise QueryError(f'unknown table "{name}"')
        return self.tables[name]

    def _restricted(self, query: Query) -> pd.DataFrame:
        used = self.rows[self.rows["event"] == query.event]
        for name, allowed in query.where:
            used = used[used[name].astype(str).isin(allowed)]
        return used
