"""Sections as HTML: the same blocks as on a terminal, pictures and all, every text escaped."""

import re
from dataclasses import dataclass

import pandas as pd

from scenarios.views.conclusion import Conclusion
from scenarios.views.html import section as html
from scenarios.views.section import Cell, Code, Command, Figure, Place, Says, Section, Verdict, table


@dataclass(frozen=True, slots=True)
class Busy(Conclusion):
    """How busy a server was."""

    utilisation: float

    def section(self):
        return Section("How <busy>", (Says(f"{self.utilisation:.0%} busy & well"), Place("figure: busy.png")))

    def payload(self):
        return {"kind": "busy", "utilisation": self.utilisation}

    def frame(self):
        return pd.DataFrame({"utilisation": [self.utilisation]})


def test_a_conclusion_shows_itself_in_a_notebook():
    text = Busy(0.41)._repr_html_()
    assert "<h4>How &lt;busy&gt;</h4>" in text
    assert "<p>41% busy &amp; well</p>" in text
    assert '<p class="place">figure: busy.png</p>' in text


def test_every_block_is_there_and_in_order():
    section = Section(
        "",
        (
            Says("says <1>", "strong"),
            table(("of", "cycles"), [("<2>", Cell("3", "bad"))], title="title <4>", caption="below <5>"),
            Figure("data:,x", "figure <6>"),
            Command("wsc run '<7>'"),
            Code("code: <8>"),
            Verdict("lens <9>", "says", holds=True),
        ),
    )
    text = html(section)
    assert re.findall(r"&lt;(\d)&gt;", re.sub(r'(alt|aria-label)="[^"]*"', "", text)) == list("14256789")
    assert '<p class="strong">' in text
    assert '<td class="number fails">3</td>' in text
    assert 'src="data:,x"' in text
