"""Faults of a trace's files as they are found: the first are kept, all are counted."""

from dataclasses import dataclass, field

from analysis.tables.cells import TableFault
from analysis.tables.readers import PRINTED

_KEPT = 50 * PRINTED


@dataclass(slots=True)
class Faults:
    """The faults of one file, found in any order.

    Examples
    --------
    >>> faults = Faults()
    >>> faults.add(TableFault(7, 1, "row", "should have 20 fields", "3"))
    >>> faults.add(TableFault(3, 6, "cpus", "should be a number", '"x"'))
    >>> faults.printed()[0].line, faults.count
    (3, 2)
    """

    count: int = 0
    _kept: list[TableFault] = field(default_factory=list)

    def add(self, fault: TableFault) -> None:
        """Count a fault, and keep it if it is one of the first."""
        self.count += 1
        if len(self._kept) < _KEPT:
            self._kept.append(fault)

    def printed(self) -> tuple[TableFault, ...]:
        """Return the faults that are spelled out, in the order of the file."""
        return tuple(self._in_order()[:PRINTED])

    def unprinted(self) -> tuple[int, TableFault] | None:
        """Return how many faults are only counted, and the first of them; None if there is none."""
        return (self.count - PRINTED, self._in_order()[PRINTED]) if self.count > PRINTED else None

    def _in_order(self) -> list[TableFault]:
        return sorted(self._kept, key=lambda fault: fault[:2])
