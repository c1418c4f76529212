"""A Dask cluster on this machine, for tests."""

from contextlib import contextmanager

import pytest


@contextmanager
def cluster(workers):
    """Yield a cluster of so many workers of one thread each; they come from the fork server, with libraries loaded."""
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
        ) as made,
    ):
        yield made
