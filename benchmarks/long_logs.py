"""Peak memory and processor time of `wsc occupancy` on a long log, in memory and with `--on-disk`.

    python benchmarks/long_logs.py [--requests 5000000] [--nginx] [--on-disk-alone]

The log, made first in a temporary folder, is of requests first come first served on eight servers, three quarters
busy, in the order of completion: a Parquet table, or lines of nginx with stamps of whole seconds.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from models.arrays import Floats
from models.queues.serve import serve

SERVERS, RATE_HZ, BEGIN_S, CHUNK = 8, 700.0, 1.795e9, 1_000_000


def stretches(requests: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield arrivals and durations of so many requests, seconds since 1970, a stretch after the other."""
    rng, at_s = np.random.default_rng(1), BEGIN_S
    for begin in range(0, requests, CHUNK):
        count = min(CHUNK, requests - begin)
        arrival = rng.exponential(1 / RATE_HZ, count).cumsum()
        departure = serve("fcfs", arrival, rng.lognormal(-5.1, 0.8, count), SERVERS).departure_s
        order = np.argsort(departure, kind="stable")
        yield at_s + arrival[order], (departure - arrival)[order]
        at_s += arrival[-1] + 0.5


def write(file: Path, requests: int) -> None:
    """Write so many requests to a Parquet table."""
    schema = pa.schema([("start", pa.timestamp("us", "UTC")), ("latency_ms", pa.float64())])
    with pq.ParquetWriter(file, schema) as writer:
        for arrival_s, took_s in stretches(requests):
            start = pa.array(np.round(arrival_s * 1e6).astype(np.int64)).cast(schema[0].type)
            writer.write_table(pa.table([start, np.round(1000 * took_s, 6)], schema=schema))


def write_lines(file: Path, requests: int) -> None:
    """Write so many requests as lines of nginx's combined format, with the duration after it."""
    number = 0
    with file.open("w", encoding="utf-8") as log:
        for arrival_s, took_s in stretches(requests):
            for end_s, took in zip((arrival_s + took_s).tolist(), took_s.tolist(), strict=True):
                stamp = _clock(int(end_s))
                request = f'"GET /item/{number % 997}?q={number} HTTP/1.1" 200 {number % 5000}'
                log.write(f'10.0.{number % 256}.7 - - [{stamp}] {request} "-" "Mozilla/5.0 (X11; Linux)" {took:.3f}\n')
                number += 1


@cache
def _clock(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")


def main() -> None:
    """Make the log, and print a line for each way to read it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=lambda text: int(float(text)), default=5_000_000)
    parser.add_argument("--nginx", action="store_true", help="lines of an access log, not a table")
    parser.add_argument("--on-disk-alone", action="store_true")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        rest = ["--on-disk"] if options.on_disk_alone else []
        command = ["-m", "wsc", "occupancy", str(options.child), "--servers", str(SERVERS), "--interval", "60s", *rest]
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{used.ru_maxrss / 1024:,.0f} MB, user {used.ru_utime:.1f} s, system {used.ru_stime:.1f} s")
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ("access.log" if options.nginx else "log.parquet")
        (write_lines if options.nginx else write)(file, options.requests)
        for rest in (["--on-disk-alone"], *([[]] if not options.on_disk_alone else [])):
            print("on disk" if rest else "in memory", end=": ", flush=True)
            subprocess.run([sys.executable, __file__, "--child", str(file), *rest], check=True)


if __name__ == "__main__":
    main()
