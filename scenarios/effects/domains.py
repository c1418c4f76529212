"""Where machines disturb their neighbours: the total effect by domains, everybody on against nobody on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from analysis.effects.estimand import Estimand
from analysis.effects.exposure import Domains, EffectPart, ExposureEffect
from analysis.effects.observations import FIELDS
from analysis.effects.study import half_width
from analysis.tables.cells import Source
from analysis.tables.recipe import Recipe
from models.arrays import Bools
from scenarios.effects.observations import POWER_DOMAIN, Experiment, clustered_by
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
            return (
                f"all {count:,} values of {column} have {self.shares[0]:.0%} of their machines with the feature, so "
                "what neighbours do cannot be told from the feature's own effect: draw them to unlike shares, such as "
                "0 and 100% (wsc design --domain)"
            )
        if not estimand.plain or count < _LEAST:
            least = f"{_LEAST} values of {column} with unlike shares, or " if estimand.plain else ""
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


def with_domain(recipe: Recipe, domain: str | None, sources: Sequence[Source]) -> Recipe:
    """Return the recipe with which a column that is none of ours is read as domains are; of runs it is as it was."""
    if all(isinstance(source, Path) and source.is_dir() for source in sources):
        return recipe
    if domain is None or domain in {field.name for field in FIELDS} or "domain" in recipe.columns:
        return recipe
    quoted = domain.replace('"', '""')
    return replace(recipe, columns={**recipe.columns, "domain": f'"{quoted}"'})


def in_domains(read: Experiment, column: str) -> Experiment:
    """Return an experiment in which the values of a column are the clusters.

    Raises
    ------
    FaultsError
        If no table has the column, a machine has several values there, or nobody has a neighbour.
    """
    flagged, source = read.observations, str(read.source)
    own = column if column in flagged.table else "domain"
    if own not in flagged.table:
        known = (
            ", ".join(name for name in ("domain", POWER_DOMAIN, "rack", "platform") if name in flagged.table)
            or "none of these"
        )
        raise FaultsError([Fault(source, 0, 0, "domain", f"no column {column}", known)])
    try:
        clustered = clustered_by(read, own)
    except FaultsError as error:
        raise FaultsError(replace(fault, field="domain") for fault in error.faults) from None
    size = flagged.table.groupby(own)["machine"].nunique()
    if size.max() == 1:
        problem = f"every {column} has one machine, so nobody has a neighbour: leave it out"
        raise FaultsError([Fault(source, 0, 0, "domain", problem)])
    return replace(clustered, observations=replace(clustered.observations, cluster=column))


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


def past_in_domains(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a past with the values of a column in place of racks.

    Raises
    ------
    FaultsError
        If there is no such column, or a machine has several values there.
    """
    own = column if column in table else "domain"
    if own not in table:
        known = ", ".join(name for name in ("domain", "rack", "platform") if name in table) or "none of these"
        raise FaultsError([Fault("", 0, 0, "domain", f"no column {column}", known)])
    of_machine = table.groupby("machine")[own].agg(["first", "nunique"])
    if (of_machine["nunique"] > 1).any():
        problem = f"a machine should have one value of {column} throughout"
        raise FaultsError([Fault("", 0, 0, "domain", problem, f"several on {of_machine['nunique'].idxmax()}")])
    return table.assign(rack=table["machine"].map(of_machine["first"]).astype(str))


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
            f"{self.at(self.correlation):.2f} of it; the rest is of few domains. It would be {others}."
        )
