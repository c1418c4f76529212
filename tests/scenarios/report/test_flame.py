"""Flame graphs in reports: SVG whose widths are shares, which says what is left out and holds names as text."""

import base64
import xml.etree.ElementTree as ET

import pandas as pd
import pytest

from analysis.profiling.database import Database
from scenarios.report.flame import flames
from tests.helpers.small_profile import HOSTILE, PATHS, write

SVG = "{http://www.w3.org/2000/svg}"


def drawn(figure):
    """The rectangles of a picture's frames, with their texts."""
    root = ET.fromstring(base64.b64decode(figure.source.partition(",")[2]))
    frames, at = [], list(root)
    for element, after in zip(at, [*at[1:], None], strict=True):
        if element.tag == f"{SVG}rect" and float(element.get("height")) > 10:
            text = after.text if after is not None and after.tag == f"{SVG}text" else ""
            frames.append((text, *(float(element.get(name)) for name in ("x", "y", "width"))))
    return frames


def test_widths_are_shares_of_pandas_and_frames_lie_on_their_callers(small_profile):
    with Database([small_profile]) as database:
        whole, largest = flames(database, "wsc serve RUN")
    rows = pd.read_parquet(small_profile / "samples.parquet").query("event == 'cpu_time'")
    rows = rows.merge(pd.read_parquet(small_profile / "processes.parquet"), on="process")
    shares = rows.groupby("application")["count"].sum() / rows["count"].sum()
    frames = drawn(whole)
    assert frames[0] == ("all", 0.0, 0.0, 1100.0)
    widths = {text: width for text, _, y, width in frames if y == 18.0}
    assert widths == {name: pytest.approx(1100 * share, abs=0.1) for name, share in shares.items()}
    assert any(HOSTILE.startswith(text[:-1]) for text, *_ in frames if text.startswith("</script"))
    for frame in (whole, largest):
        boxes = drawn(frame)
        for _, x, y, width in boxes[1:]:
            assert any(
                up == y - 18 and left <= x + 0.11 and x + width <= left + size + 0.11 for _, left, up, size in boxes
            )
    own = rows[rows["application"] == shares.idxmax()]
    below = sum(number for stack, number in own.groupby("stack")["count"].sum().items() if PATHS[stack][:2] == (0, 1))
    assert ("serve", pytest.approx(1100 * below / own["count"].sum(), abs=0.1)) in [
        (text, width) for text, _, y, width in drawn(largest) if y == 36.0
    ]
    assert f"CPU time of {shares.idxmax()}, which has the most," in largest.says
    assert "`wsc serve RUN` has all" in whole.says


def test_a_profile_without_call_paths_has_no_flame_graph(tmp_path):
    folder = write(tmp_path / "run")
    samples = pd.read_parquet(folder / "samples.parquet")
    samples[samples["stack"] < 0].to_parquet(folder / "samples.parquet", index=False)
    with Database([folder]) as database:
        assert flames(database, "wsc serve RUN") == ()
