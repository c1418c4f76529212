"""Put what `wsc reproduce` said of rows into docs/papers.md: a line a row, and the spread of what does not hold.

wsc reproduce wsmeter --worlds 10 --explain --json > wsmeter.json
wsc reproduce world/slots --worlds 10 --json > slots.json
python docs/verdicts.py wsmeter.json slots.json

What was said of each row last is kept in scenarios/papers/verdicts.json, which is shipped: one paper can be measured
without the others. Without files the document is filled from there.
"""

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios.papers.record import RECORD

DOCUMENT = Path(__file__).parent / "papers.md"
PAPERS = ("wsmeter", "occupancy", "crossplatform", "gwp", "world")
"""Those of the rows, and last the rows of the world itself."""
_KEPT = ("id", "verdict", "finding", "worlds", "holds_in_first_world", "criteria", "explanations", "population")
_DIGITS = 4
Told = Mapping[str, Any]
"""A row, or a criterion of it, as JSON holds it."""


def counts(rows: Sequence[Told]) -> Iterator[str]:
    """Yield a line of a table for each kind of criteria: how many hold, depend on the world, do not hold."""
    for kind in ("finding", "check", "deviation"):
        told = [criterion["verdict"] for row in rows for criterion in row["criteria"] if criterion["kind"] == kind]
        numbers = [told.count(verdict) for verdict in ("holds", "depends on the world", "does not hold")]
        yield f"| {kind}s | {len(told)} | {' | '.join(map(str, numbers))} |"
    verdicts = [row["verdict"] for row in rows if row["finding"]]
    numbers = [verdicts.count(verdict) for verdict in ("holds", "depends on the world", "does not hold")]
    yield f"| rows with findings | {len(verdicts)} | {' | '.join(map(str, numbers))} |"
    first = sum(row["holds_in_first_world"] for row in rows)
    yield f"| all rows, by world 1 alone (the old rule) | {len(rows)} | {first} | – | {len(rows) - first} |"


def row_line(row: Told) -> str:
    """Return a row's line: verdict, worlds, how many findings hold, and what does not."""
    findings = [criterion for criterion in row["criteria"] if criterion["kind"] == "finding"]
    holding = sum(criterion["verdict"] == "holds" for criterion in findings)
    others = "; ".join(failing(criterion) for criterion in row["criteria"] if criterion["verdict"] != "holds")
    count = f"{holding} of {len(findings)}" if findings else "–"
    verdict = ("" if row["finding"] else "check ") + row["verdict"]
    return f"| `{row['id']}` | {verdict} | {len(row['worlds'])} | {count} | {others or '–'} |"


def failing(criterion: Told) -> str:
    """Return a criterion that does not hold, or depends on the world, with its spread."""
    spread = criterion["spread"]
    low, middle, high = (_number(spread[name], criterion["bound"]) for name in ("least", "median", "most"))
    measured = sum(value is not None for value in criterion["values"])
    among = f"{low} / {middle} / {high}" if measured > 1 else middle
    held = f"{criterion['holds_in']} of {len(criterion['values'])}"
    if measured < len(criterion["values"]):
        held += f" (there is nothing to measure in {len(criterion['values']) - measured})"
    pooled = "" if criterion["pooled"] is None else f", pooled {_number(criterion['pooled'])}"
    return f"`{criterion['name']}` {criterion['relation']} {_number(criterion['bound'])}: {among}, {held}{pooled}"


def _number(value: float | None, bound: float | None = None) -> str:
    """Return a number to three digits, or four where it would read like the bound that it is not."""
    if value is None:
        return "not measured"
    return f"{value:.{_DIGITS if bound not in (None, value) and f'{value:.3g}' == f'{bound:.3g}' else 3}g}"


def explanations(rows: Iterable[Told]) -> Iterator[str]:
    """Yield a line for each cause that was removed."""
    for row in rows:
        for trial in row["explanations"]:
            held = " | ".join(_held(trial, name) for name in ("", "cause_", "sham_"))
            turned = f"{trial['turned']} of {trial['failing']}"
            says = "yes" if trial["explains"] else "no"
            names = f"`{row['id']}` `{trial['criterion']}`"
            sham = f"{trial['sham']} | {trial['sham_size']:.2g}"
            yield f"| {names} | {trial['cause']} | {sham} | {held} | {turned} | {trial['worlds']} | {says} |"


def _held(trial: Told, of: str) -> str:
    """Return in how many worlds a criterion holds, with the rate of all draws if it is one."""
    pooled = trial.get(f"{of}pooled")
    return f"{trial[f'{of}holds_in']}" + ("" if pooled is None else f" ({_number(pooled)})")


def populations(rows: Iterable[Told]) -> Iterator[str]:
    """Yield a line for each row that was also tried with the other population."""
    for row in rows:
        other = row["population"]
        if other and other["verdict"]:
            says = f"{other['used']} | {row['verdict']} | {other['other']} | {other['verdict']} ({other['worlds']})"
            yield f"| `{row['id']}` | {says} |"


def recorded(rows: Iterable[Told]) -> list[Told]:
    """Return what was said of all rows, with what is said of some of them now; numbers to four digits."""
    known = {row["id"]: row for row in json.loads(RECORD.read_text("utf-8"))} if RECORD.exists() else {}
    known |= {row["id"]: _rounded({name: row[name] for name in _KEPT}) for row in rows}
    return sorted(known.values(), key=lambda row: PAPERS.index(row["id"].split("/")[0]))


def _rounded(value: Any) -> Any:  # noqa: ANN401  # JSON
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items() if name != "reason"}
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def put(text: str, name: str, lines: Iterable[str]) -> str:
    """Return the text with the lines of a table put between the marks of that name, its two lines of heads kept."""
    heads = re.search(rf"<!-- {name} -->\n((?:\|.*\n){{2}})", text)
    if heads is None:
        raise SystemExit(f"{DOCUMENT}: no table {name}")
    body = "".join(f"{line}\n" for line in lines)
    start, end = heads.end(), text.index(f"<!-- /{name} -->")
    return text[:start] + body + text[end:]


def main() -> None:
    """Read what rows said and put it into the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="what wsc reproduce --json printed")
    rows = recorded(row for file in parser.parse_args().files for row in json.loads(file.read_text(encoding="utf-8")))
    RECORD.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8"), rows), encoding="utf-8")


def filled(text: str, rows: Sequence[Told]) -> str:
    """Return the document with what was said of rows in its tables."""
    papers, world = ([row for row in rows if row["id"].startswith("world/") == own] for own in (False, True))
    tables = {"counts": counts(papers), "verdicts": map(row_line, papers), "world": map(row_line, world)}
    tables |= {"explanations": explanations(papers), "populations": populations(papers)}
    for name, lines in tables.items():
        text = put(text, name, lines)
    return text


if __name__ == "__main__":
    main()
