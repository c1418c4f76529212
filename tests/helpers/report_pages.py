"""Runs small enough for reports of them in tests, and a reader of pages that knows nothing of how they are made."""

from html.parser import HTMLParser

from scenarios.files.loader import load, settings
from scenarios.runs.execution import obtain
from tests.helpers.one_day_small import OVERRIDES

_SERVICES = OVERRIDES[5].replace("instances: 24", "instances: 8").replace("instances: 16", "instances: 6")
DAY = (
    *(*OVERRIDES, _SERVICES, "fleet.machines=32", "trial.machines=6"),
    *("profiling.programs.functions=6", "profiling.collector.samples_per_s=4.0"),
)
SMALL = ("fleet.machines=80", "analyses.wsmeter.machines=[10, 20]")
KINDS = {"small": SMALL, "one_day": DAY, "queue_small": (), "cross_stockonline": ("horizon_s=1800",)}
_VOID = {"meta", "link", "img", "br", "hr", "input", "wbr"}


def made(name, out, *overrides):
    """Return the run of a small scenario."""
    return obtain(load(name, settings([*KINDS[name], *overrides])), out, False, lambda _what, _share: None)


class Page(HTMLParser):
    """A page as text, tables of cells by section, elements and the addresses that they name."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.rows, self.texts, self.open = [], [], [], [], []
        self.anchors = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in {"src", "href", "srcset", "action", "data"}]
        self.anchors |= {value for name, value in attrs if name == "id"}
        if any(name.startswith("on") for name, _ in attrs):
            raise AssertionError(f"{tag} has a handler of events")
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} is closed and was not opened last"

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.strip()
        if "style" not in self.open:
            self.texts.append(data.strip())

    @property
    def said(self):
        return " ".join(text for text in self.texts if text)

    def has_row(self, *cells):
        """Return whether some row has these cells, in this order, perhaps with others between them."""
        for row in self.rows:
            left = iter(row)
            if all(cell in left for cell in cells):
                return True
        return False
