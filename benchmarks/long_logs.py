"""Peak memory and processor time of `wsc occupancy` on a long Parquet log, in memory and with `--on-disk`.

    python benchmarks/long_logs.py [--requests 5000000] [--on-disk-alone]

The log, made first in a temporary folder, is of requests first come first served on eight servers, three quarters
busy, in the order of completion.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from models.queues.serve import serve

SERVERS, RATE_HZ, BEGIN_S, CHUNK = 8, 700.0, 1.795e9, 1_000_000


def write(file: Path, requests: int) -> None:
    """Write so many requests, a stretch after the other."""
    rng, at_s = np.random.default_rng(1), BEGIN_S
    schema = pa.schema([("start", pa.timestamp("us", "UTC")), ("latency_ms", pa.float64())])
    with pq.ParquetWriter(file, schema) as writer:
        for begin in range(0, requests, CHUNK):
            count = min(CHUNK, requests - begin)
            arrival = rng.exponential(1 / RATE_HZ, count).cumsum()
            departure = serve("fcfs", arrival, rng.lognormal(-5.1, 0.8, count), SERVERS).departure_s
            order = np.argsort(departure, kind="stable")
            start = pa.array(np.round((at_s + arrival[order]) * 1e6).astype(np.int64)).cast(schema[0].type)
            latency = np.round(1000 * (departure - arrival)[order], 6)
            writer.write_table(pa.table([start, latency], schema=schema))
            at_s += arrival[-1] + 0.5


def main() -> None:
    """Make the log, and print a line for each way to read it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=lambda text: int(float(text)), default=5_000_000)
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
        file = Path(folder) / "log.parquet"
        write(file, options.requests)
        for rest in (["--on-disk-alone"], *([[]] if not options.on_disk_alone else [])):
            print("on disk" if rest else "in memory", end=": ", flush=True)
            subprocess.run([sys.executable, __file__, "--child", str(file), *rest], check=True)


if __name__ == "__main__":
    main()
