"""The script of the flame graph, in Node.js without a browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "web" / "flame.mjs"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_a_search_under_a_zoom_counts_frames_whose_sums_no_double_holds(tmp_path):
    """Below main, two frames of 2^53 + 2 and one of 1: summed in doubles, the last ends behind main."""
    large = 2**53 + 2
    whole = 2 * large + 1
    tree = {
        "parent": [-1, 0, 1, 1, 1],
        "function": [0, 1, 2, 3, 4],
        "value": [whole, whole, large, 1, large],
        "own": [0, 0, large, 1, large],
    }
    names = ["all", "main", "first", "second", "third"]
    functions = {"name": names, "value": tree["value"], "own": tree["own"], "line": [0] * 5}
    functions |= {"image": ["a"] * 5, "file": [""] * 5}
    answer = {"view": "icicle", "focus": "", "unit": "nanoseconds", "value": whole, "frames": [5]}
    (tmp_path / "frames.json").write_text(json.dumps(answer | {"functions": functions, "trees": [tree]}))
    for term, share in (("third", "50.00%"), ("r", "100.00%"), ("main", "100.00%")):
        ran = subprocess.run(
            ["node", SCRIPT, tmp_path / "frames.json", "1", term],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert f"Within the frame shown, main, drawn frames that match have {share} of it" in ran.stdout
