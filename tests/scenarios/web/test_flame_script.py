"""The script of the flame graph, in Node.js without a browser."""

import colorsys
import json
import re
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


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_names_that_begin_alike_are_told_apart_where_they_have_no_room(tmp_path):
    """Of 78 pixels, 10 letters: names go on in a further line, or lose package or middle, not their ends."""
    names = ["all", *(f"heavyweight-{number}" for number in range(10, 18)), "std::Server::handle_stream_of_frames"]
    names += ["Server::handle", "net.http.transport.client.scanobject"]
    names += ["compress_one_two_three.constprop.0", "uninterruptiblylongnameofonewordthatends"]
    count = len(names)
    tree = {"parent": [-1, *[0] * (count - 1)], "function": list(range(count)), "value": [1000, *[65] * (count - 1)]}
    tree["own"] = [0, *[65] * (count - 1)]
    functions = {"name": names, "value": tree["value"], "own": tree["own"], "line": [0] * count}
    functions |= {"image": ["a"] * count, "file": [""] * count}
    answer = {"view": "icicle", "focus": "", "unit": "nanoseconds", "value": 1000, "frames": [count]}
    (tmp_path / "frames.json").write_text(json.dumps(answer | {"functions": functions, "trees": [tree]}))
    command = ["node", SCRIPT, tmp_path / "frames.json", "0", "none"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    labels = "|".join(ran.stdout.splitlines()[1:])
    for number in range(10, 18):
        assert f"|heavyw|eight-{number}|6.50%|" in labels
    assert "|…handle_|stream_of_|frames|6.50%|" in labels
    assert "|Server::|handle|6.50%|" in labels
    assert "|unint…ends|6.50%|" in labels
    assert "|scanobject|6.50%|" in labels
    assert "|compr…op.0|6.50%|" in labels
    assert "|…client.|scanobject|6.50%|" in labels


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_slivers_stand_in_a_block_unless_a_search_is_about_them(tmp_path):
    """Of 1,200 pixels, one frame has 400, and 800 have one each: the first is drawn, the second are with a search."""
    names = ["all", "wide", *["sliver"] * 800]
    count = len(names)
    tree = {"parent": [-1, *[0] * (count - 1)], "function": [0, 1, *[2] * 800], "value": [1200, 400, *[1] * 800]}
    tree["own"] = [0, *tree["value"][1:]]
    functions = {"name": ["all", "wide", "sliver"], "value": [0, 400, 800], "own": [0, 400, 800], "line": [0] * 3}
    functions |= {"image": ["a"] * 3, "file": [""] * 3}
    answer = {"view": "icicle", "focus": "", "unit": "nanoseconds", "value": 1200, "frames": [count]}
    (tmp_path / "frames.json").write_text(json.dumps(answer | {"functions": functions, "trees": [tree]}))
    for term, drawn in (("none", 2), ("sliver", 802)):
        command = ["node", SCRIPT, tmp_path / "frames.json", "0", term]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert int(ran.stderr) == drawn


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_a_search_lists_functions_of_which_no_frame_is_drawn(tmp_path):
    """Also if the server is busy at first; the share is that of all that matches, drawn or not."""
    functions = {"name": ["all", "main", "read_all"], "value": [0, 990, 600], "own": [0, 390, 600], "line": [0] * 3}
    functions |= {"image": ["a"] * 3, "file": [""] * 3}
    tree = {"parent": [-1, 0, 1], "function": [0, 1, 2], "value": [1000, 990, 600], "own": [10, 390, 600]}
    answer = {"view": "icicle", "focus": "", "unit": "nanoseconds", "value": 1000, "frames": [9], "functions_in_all": 7}
    answer |= {"listed": 3, "functions": functions, "trees": [tree]}
    (tmp_path / "frames.json").write_text(json.dumps(answer))
    largest = {"name": ["read_all", "read_b", "read_c"], "value": [600, 3, 2], "own": [600, 1, 2], "line": [0] * 3}
    matches = {"value": 604, "total": 1000, "functions": 5, "largest": largest | {"image": ["a"] * 3, "file": [""] * 3}}
    (tmp_path / "matches.json").write_text(json.dumps(matches))
    command = ["node", SCRIPT, tmp_path / "frames.json", "0", "read", tmp_path / "matches.json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    says, caption, *names = ran.stdout.splitlines()
    assert says == "5 functions match: 60.40% of all, in 1 drawn frame and those too small to be drawn."
    assert caption == "Functions that match: 3 of 5"
    assert names == ["read_all", "read_c", "read_b"]


def rgb(colour):
    """Return red, green and blue, 0 to 1, of a colour as the script writes them."""
    if colour.startswith("#"):
        return tuple(int(colour.strip("#")[at : at + 2], 16) / 255 for at in (0, 2, 4))
    hue, saturation, lightness = map(float, re.fullmatch(r"hsl\((\d+) (\d+)% (\d+)%\)", colour).groups())
    return colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)


def luminance(colour):
    """Relative luminance of WCAG 2.2."""
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["image", "package", "change"])
def test_text_in_frames_of_every_colour_can_be_read(tmp_path, scheme, colour):
    """A contrast of at least 4.5 (WCAG 2.2, 1.4.3), also where a search makes frames step back."""
    count = 400
    tree = {"parent": [-1, *[0] * count], "function": list(range(count + 1)), "value": [100 * count, *[100] * count]}
    tree |= {"own": [0, *[100] * count], "significant": [None, *(number % 4 > 0 for number in range(count))]}
    tree["delta"] = [0, *(number % 101 - 50 for number in range(count))]
    images = ["", *(f"image{number % 40}" if number % 41 else "" for number in range(count))]
    names = ["all", *(f"package{number % 45}::f{number}" for number in range(count))]
    functions = {"name": names, "value": [0, *[100] * count], "own": tree["own"], "image": images}
    functions |= {"file": [""] * (count + 1), "line": [0] * (count + 1)}
    answer = {"view": "icicle", "focus": "", "unit": "count", "value": 100 * count, "frames": [count + 1]}
    answer |= {"width": "b", "lacking": "", "undrawn": 0, "functions": functions, "trees": [tree]}
    (tmp_path / "frames.json").write_text(json.dumps(answer))
    colours, contrasts = set(), []
    for term in ("", "f39"):
        command = ["node", SCRIPT.with_name("colours.mjs"), tmp_path / "frames.json", scheme, colour, term]
        drawn = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
        ground = rgb(drawn["ground"])
        for fill, opacity, text in drawn["texts"]:
            frame = [opacity * own + (1 - opacity) * below for own, below in zip(rgb(fill), ground, strict=True)]
            darker, lighter = sorted((luminance(frame), luminance(rgb(text))))
            contrasts.append(((lighter + 0.05) / (darker + 0.05), fill, opacity, text))
            colours.add(fill)
    assert len(colours) > (60 if colour == "change" else 150)
    assert min(contrasts)[0] >= 4.5, min(contrasts)
