"""The scanner against the regular expression that it stands for, on lines put together from odd pieces."""

import random
import re

import numpy as np
import pytest

from analysis.occupancy.logs import access_logs
from analysis.occupancy.logs.access_logs import FORMS, read_access_log
from analysis.occupancy.logs.scanner import EMPTY, SURE, scan, unscanned

SINGLE = re.compile(FORMS[-1].others().encode())
HOSTS = ["::1 - - ", "10.0.0.1 - me ", "", "a [b] ", 'a "b" ', "[x] "]
STAMPS = ["[10/Oct/2023:13:55:36 +0000]", "[1700000000.125]", "[]", "[10 Oct", "10/Oct/2023:13:55:36]", "[é]", "[a]]"]
REQUESTS = ['"GET / HTTP/1.1"', r'"GET /\"x\" HTTP/1.1"', '"GET /', '"\\', '""', "GET /", '"a b" c']
CODES = ["200 5", "200 -", "20 5", "2000 5", "200 x", "200  5", "404 0"]
FIELDS = ["0.25", "7", '"-"', '"a 1 b"', "-", "1.", ".5", "1.2.3", "", "rt=0.5", '"open', "0.000", "x1", "-1", "1e3"]
FIELDS += ['a"b c"', "12345678901234567", "0.1234567890123456789", "00.50", "é"]
ENDS = ["", "\r", " ", "\r\r", "\t"]


def lines(seed, count):
    """Return lines of which about a third are right."""
    draw = random.Random(seed)

    def some(options, wrong):
        return draw.choice(options) if draw.random() < wrong else options[0]

    for _ in range(count):
        fields = [draw.choice(FIELDS) for _ in range(draw.randint(0, 4))]
        body = [some(STAMPS, 0.2), some(REQUESTS, 0.2), some(CODES, 0.2), *fields]
        yield some(HOSTS, 0.3) + some([" ", "  "], 0.05).join(body) + some(ENDS, 0.3) if draw.random() > 0.02 else ""


@pytest.mark.parametrize("seed", range(4))
def test_it_takes_what_the_expression_takes_with_the_same_parts_or_leaves_the_line_to_it(seed):
    written = [line.encode() for line in lines(seed, 2500)]
    content, texts = b"\n".join(written), [line.removesuffix(b"\r") for line in written]
    scanned = scan(np.frombuffer(content, np.uint8), len(texts))
    digests, taken, left = {}, 0, 0
    for i, text in enumerate(texts):
        assert content[scanned.begin[i] : scanned.end[i]] == text
        assert (scanned.kind[i] == EMPTY) == (text == b"")
        match = SINGLE.match(text)
        if scanned.kind[i] != SURE:
            left += match is not None
            continue
        taken += 1
        before, between, after = match.groups()
        stamp, number = text[match.end(1) : match.start(2)], text[match.end(2) : match.start(3)]
        begin, end = scanned.stamps[scanned.stamp[i]]
        assert content[begin:end] == stamp
        assert scanned.took[i] == float(number)
        assert scanned.decimals[i] == (len(number.partition(b".")[2]) if b"." in number else -1)
        assert digests.setdefault(before + between + after, scanned.rest[i]) == scanned.rest[i]
    assert len(set(digests.values())) == len(digests)
    assert taken > 200
    assert left < taken


def test_a_log_reads_the_same_with_and_without_it(tmp_path, monkeypatch):
    right = '10.0.0.{} - - [2023-10-10T13:55:{:02}.{:03}Z] "GET /{} HTTP/1.1" 200 5 "-" "curl" 0.{:03}'
    draw = random.Random(1)
    whole = sorted(right.format(i % 7, i % 60, i % 1000, i, draw.randint(0, 999)) for i in range(1200))
    mixed = [*whole, *[line for line in lines(9, 500) if not re.match(access_logs._SEVERAL, line)]]
    (tmp_path / "access.log").write_text("\n" + "\n".join(mixed))
    monkeypatch.setattr(access_logs, "_PIECE_BYTES", 1000)
    fast = read_access_log(tmp_path / "access.log", fields=True)
    monkeypatch.setattr(access_logs, "scan", unscanned)
    monkeypatch.setattr(access_logs, "_PIECE_BYTES", 1 << 24)
    slow = read_access_log(tmp_path / "access.log", fields=True)
    assert (fast.notes, fast.findings) == (slow.notes, slow.findings)
    assert fast.table.equals(slow.table)
    assert fast.fields.astype(str).equals(slow.fields.astype(str))
