"""Where machines disturb their neighbours: the total effect by domains, everybody on against nobody on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd

from analysis.effects.estimand import Estimand
from analysis.effects.exposure import Domains, EffectPart, ExposureEffect
from analysis.effects.study import half_width
from models.arrays import Bools
from scenarios.effects.observations import Experiment, clustered_by, without
from scenarios.files.faults import Fault, FaultsError
from scenarios.views.numbers import plural
from scenarios.views.section import Block, Says

FEWEST = 2
"""Domains with everybody on, and with nobody on, from which these are compared."""
_LEAST = 4
"""Domains from which the share of neighbours tells anything."""


@dataclass(frozen=True, slots=True)
class SpillOver:
    """The total effect of a feature, and what of it is a machine's own and what its neighbours'."""

    domain: str
    """The column."""
    everybody: int
    """Domains in which all machines have the feature."""
    nobody: int
    mixed: int
    shares: tuple[float, float]
    """The least and the largest share of a domain's machines that have it."""
    confidence: float
    exposure: ExposureEffect | None = None
    """By the share of neighbours; None where that is not estimated."""

    @classmethod
    def of(cls, domains: Domains, column: str, confidence: float) -> Self:
        """Return what domains tell before anything is estimated."""
        everybody, nobody = int(domains.everybody.sum()), int(domains.nobody.sum())
        shares = float(domains.share.min()), float(domains.share.max())
        return cls(column, everybody, nobody, len(domains.size) - everybody - nobody, shares, confidence)

    @property
    def between(self) -> bool:
        """Whether domains with everybody on are compared with those with nobody on; else shares of neighbours are."""
        return min(self.everybody, self.nobody) >= FEWEST

    def untold(self, domains: Domains, estimand: Estimand) -> str:
        """Return in words why domains do not tell the total effect; nothing if they do."""
        if self.between:
            return ""
        count, column = len(domains.size), self.domain
        if domains.alike:
            every = f"all {count:,} values of {column} have" if count > 1 else f"the only value of {column} has"
            return (
                f"{every} {self.shares[0]:.0%} of their machines with the feature, so "
                "what neighbours do cannot be told from the feature's own effect: draw them to unlike shares, such as "
                "0 and 100% (wsc design --domain)"
            )
        on_a_line = estimand.plain or estimand.linear
        if not on_a_line or count < _LEAST:
            least = f"{_LEAST} values of {column} with unlike shares, or " if on_a_line else ""
            got = f"got {self.everybody:,} and {self.nobody:,} of {count:,}"
            return f"needs {least}{FEWEST} with everybody on and {FEWEST} with nobody on, {got}"
        return ""

    def payload(self) -> dict[str, object]:
        """Return it as JSON holds it."""
        named = {name: getattr(self, name) for name in ("domain", "everybody", "nobody", "mixed", "between")}
        payload: dict[str, object] = {**named, "shares": list(self.shares)}
        if (exposure := self.exposure) is not None:
            payload |= {name: self._part(getattr(exposure, name)) for name in _PARTS}
            payload |= {"correlation": exposure.correlation, "machines_of_a_domain": exposure.machines}
            payload["price"] = exposure.price
        return payload

    def _part(self, part: EffectPart) -> dict[str, float]:
        low, high = self._ends(part)
        return {**part._asdict(), "low": low, "high": high}

    def _ends(self, part: EffectPart) -> tuple[float, float]:
        margin = float(half_width(np.array(part.error), np.array(part.freedom), self.confidence))
        return part.change - margin, part.change + margin

    def blocks(self, estimand: Estimand) -> Iterator[Block]:
        """Yield what is said of domains."""
        yield Says(f"total effect, everybody on against nobody on, {self._how()}")
        if self.exposure is None:
            return
        if np.isfinite(self.exposure.direct.change):
            words = zip(("total", "a machine's own feature", "all neighbours'"), _PARTS, strict=True)
            parts = [self._in_words(word, name, estimand.amount) for word, name in words]
            yield Says(f"by the share of neighbours: {', '.join(parts)}")
        if np.isfinite(self.exposure.correlation):
            machines, correlation = self.exposure.machines, self.exposure.correlation
            yield Says(
                f"machines of a domain correlate by {correlation:.3f}: with whole domains intervals are "
                f"√(1 + ({machines:.1f} − 1) × {correlation:.3f}) = {self.exposure.price:.2f} times as wide as with as "
                "many machines drawn one by one"
            )

    def _how(self) -> str:
        if not self.between:
            return (
                "by the share of neighbours with the feature: a straight line through domains in which "
                f"{self.shares[0]:.0%} to {self.shares[1]:.0%} of the machines have it"
            )
        words = f"between {plural(self.everybody, 'domain')} with everybody on and {self.nobody:,} with nobody on"
        verb = "is" if self.mixed == 1 else "are"
        return words + (f"; {plural(self.mixed, 'domain')} with both {verb} left out" if self.mixed else "")

    def _in_words(self, word: str, name: str, amount: Callable[[float], str]) -> str:
        part = getattr(self.exposure, name)
        low, high = self._ends(part)
        return f"{word} {amount(part.change)} ({amount(low)} to {amount(high)})"


_PARTS = ("total", "direct", "spill")


def in_domains(read: Experiment, column: str, name: str) -> Experiment:
    """Return an experiment in which the values of a column are the clusters.

    Parameters
    ----------
    column : as it is asked for
    name : its name in the table

    Raises
    ------
    FaultsError
        If no table has the column, a machine has several values there, or nobody has a neighbour.
    """
    source = str(read.source)
    try:
        clustered = clustered_by(read, column, name)
    except FaultsError as error:
        raise FaultsError(replace(fault, field="domain") for fault in error.faults) from None
    _refuse_alone(clustered.observations.table, column, source)
    return _with_neighbours(replace(clustered, observations=replace(clustered.observations, cluster=column)), column)


def _with_neighbours(read: Experiment, column: str) -> Experiment:
    """Return an experiment without machines that are alone in their domain, and a note on them.

    Such a one shows its own effect alone: it is no domain with everybody on.
    """
    rows = read.observations
    beside = (rows.table.groupby("rack")["machine"].transform("nunique") > 1).to_numpy()
    if beside.all():
        return read
    alone = rows.table.loc[~beside, "machine"].nunique()
    verb = "is" if alone == 1 else "are"
    note = f"{plural(alone, 'machine')} alone in a value of {column} {verb} left out: nobody is disturbed there"
    few = replace(
        rows,
        table=rows.table[beside].reset_index(drop=True),
        unusable=rows.unusable[beside],
        amounts={name: wrong[beside] for name, wrong in rows.amounts.items()},
        lines=None if rows.lines is None else rows.lines[beside],
    )
    return replace(read, observations=few, notes=(*read.notes, note))


def domains_of(rows: pd.DataFrame) -> tuple[pd.Series, Domains]:
    """Return the domain of each machine of the study, by machine, and which machines have the feature."""
    study = rows[rows["period"] >= rows.loc[rows["treated"] == 1, "period"].min()]
    machines = study.groupby("machine", sort=True).agg(domain=("rack", "first"), having=("treated", "max"))
    codes, _ = pd.factorize(machines["domain"], sort=True)
    return machines["domain"], Domains(codes.astype(np.int64), (machines["having"] == 1).to_numpy())


def whole_domains(rows: pd.DataFrame, of_machine: pd.Series, domains: Domains) -> pd.DataFrame:
    """Return the rows of domains in which everybody has the feature or nobody has."""
    whole: Bools = (domains.everybody | domains.nobody)[domains.domain]
    return rows[rows["machine"].isin(of_machine.index[whole])].reset_index(drop=True)


def past_in_domains(table: pd.DataFrame, column: str, name: str, shares: Sequence[float]) -> pd.DataFrame:
    """Return a past with the values of a column in place of racks.

    Parameters
    ----------
    column : as it is asked for
    name : its name in the table
    shares : of a domain's machines, to which domains are to be drawn

    Raises
    ------
    FaultsError
        If there is no such column, a machine has several values there, nobody has a neighbour, or domains have too few
        machines for the shares.
    """
    if name not in table:
        raise FaultsError([Fault("", 0, 0, "domain", *without(column, table))])
    of_machine = table.groupby("machine")[name].agg(["first", "nunique"])
    if (of_machine["nunique"] > 1).any():
        problem = f"a machine should have one value of {column} throughout"
        raise FaultsError([Fault("", 0, 0, "domain", problem, f"several on {of_machine['nunique'].idxmax()}")])
    placed = table.assign(rack=table["machine"].map(of_machine["first"]).astype(str))
    _refuse_alone(placed, column, "")
    machines = float(placed.groupby("rack")["machine"].nunique().median())
    treated = {int(np.ceil(share * machines - 0.5)) for share in shares}
    if len(treated) < len(set(shares)):
        problem = f"should differ by a machine of a domain or more: a value of {column} has {machines:g} machines"
        raise FaultsError([Fault("", 0, 0, "saturations", problem, ", ".join(f"{share:.3g}" for share in shares))])
    return placed


def _refuse_alone(table: pd.DataFrame, column: str, source: str) -> None:
    """Refuse domains of one machine each."""
    if table.groupby("rack")["machine"].nunique().max() == 1:
        problem = f"every {column} has one machine, so nobody has a neighbour: leave it out"
        raise FaultsError([Fault(source, 0, 0, "domain", problem)])


_EXAMPLES = (0.01, 0.03, 0.1)
"""Correlations that the price is told for."""


@dataclass(frozen=True, slots=True)
class DomainPrice:
    """What it costs to draw domains: how much wider margins are than with as many machines drawn one by one."""

    domain: str
    machines: float
    """Of a domain."""
    correlation: float
    """Of machines within domains."""
    rehearsed: float
    """How many times as wide margins are."""

    def at(self, correlation: float) -> float:
        """Return the price that a correlation alone has: the root of the design effect (Kish 1965)."""
        return float(max(1.0 + (self.machines - 1.0) * correlation, 0.0) ** 0.5)

    def payload(self) -> dict[str, object]:
        """Return it as JSON holds it."""
        numbers = {"domain": self.domain, "machines_of_a_domain": self.machines, "correlation": self.correlation}
        return {**numbers, "price": self.at(self.correlation), "rehearsed_price": self.rehearsed}

    def in_words(self) -> str:
        """Return what domains cost here, and at other correlations."""
        others = ", ".join(f"{self.at(correlation):.2f} at {correlation:g}" for correlation in _EXAMPLES)
        return (
            f"Drawing values of {self.domain} makes margins {self.rehearsed:.2f} times as wide as with as many "
            "machines drawn one by one, which tell no total effect. Machines of one correlate by "
            f"{self.correlation:.3f}: √(1 + ({self.machines:.1f} − 1) × {self.correlation:.3f}) = "
            f"{self.at(self.correlation):.2f} of it; the rest is of few domains: few degrees of freedom, and "
            f"covariates of fewer slopes. It would be {others}."
        )
