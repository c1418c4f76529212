"""What `wsc run` says of services that are served."""

from io import StringIO

import pandas as pd
import pytest
from rich.console import Console

from scenarios.profiling.served import service_table, services
from scenarios.runs.rundir import Run
from scenarios.views.section import Section
from scenarios.views.terminal import show

TABLES = {
    "jobs": {"job": [0, 1], "name": ["shop", "mail"]},
    "instances": {"residence": [0, 1, 2], "job": [0, 0, 1], "quota_vcpu": [1.0, 1.0, 2.0]},
    "epochs": {"epoch": [0, 1], "start_s": [0.0, 100.0]},
    "instance_epochs": {"residence": [0, 0, 1, 2, 2], "epoch": [0, 1, 1, 0, 1]},
    "stay_requests": {
        "residence": [0, 0, 1, 2, 2],
        "arrival_s": [10.0, 20.0, 150.0, 0.0, 0.0],
        "departure_s": [30.0, 40.0, float("nan"), 50.0, 60.0],
    },
}


@pytest.fixture
def run(tmp_path):
    for name, columns in TABLES.items():
        pd.DataFrame(columns).to_parquet(tmp_path / f"{name}.parquet")
    return Run(tmp_path, {})


def test_sums_of_stays_are_those_of_the_service(run):
    """By hand: shop is busy from 10 to 40 of 200 s, and from 150 to 200 of 100 s; from 20 to 30 s one waits."""
    mail, shop = services(run)
    assert (mail.service, mail.stays, mail.requests, mail.unfinished) == ("mail", 1, 2, 0)
    assert (shop.service, shop.stays, shop.requests, shop.unfinished) == ("shop", 2, 3, 1)
    assert shop.utilisation == pytest.approx((30.0 + 50.0) / (200.0 + 100.0))
    assert shop.queueing_ratio == pytest.approx(10.0 / 80.0)
    assert shop.response_time_s == pytest.approx((20.0 + 20.0) / 2)
    assert mail.utilisation == pytest.approx(110.0 / 400.0)
    assert mail.queueing_ratio == 0.0


def test_the_table_shows_every_service(run):
    console = Console(width=120, file=StringIO())
    show(Section("", (service_table(services(run)),)), console)
    (shop,) = (line.split() for line in console.file.getvalue().splitlines() if "shop" in line)
    assert shop == ["shop", "2", "3", "1", "26.7%", "0.12", "20.00", "s", "20.00", "s"]


def test_the_median_is_of_all_requests_of_a_service_that_finished(tmp_path, run):
    """Of 10, 20 and 90 s in two stays the mean is 40 s and the median 20 s."""
    log = {"residence": [0, 0, 1, 1], "arrival_s": [0.0, 0.0, 100.0, 100.0], "departure_s": [10.0, 20.0, 190.0, None]}
    pd.DataFrame(log).to_parquet(tmp_path / "stay_requests.parquet")
    (shop,) = services(run)
    assert (shop.response_time_s, shop.response_median_s) == pytest.approx((40.0, 20.0))


def test_of_one_epoch_its_length_is_what_the_run_was_asked_for(tmp_path, run):
    """By hand: one request in service from 10 to 40 s of 100 s."""
    for name in ("epochs", "instance_epochs", "stay_requests"):
        table = pd.read_parquet(tmp_path / f"{name}.parquet")
        first = {"epochs": [0], "instance_epochs": [0], "stay_requests": [0, 1]}[name]
        table.iloc[first].to_parquet(tmp_path / f"{name}.parquet")
    (shop,) = services(Run(tmp_path, {"resolved": {"epoch_s": 100.0}}))
    assert shop.utilisation == pytest.approx(30.0 / 100.0)


@pytest.mark.parametrize("name", ["stay_requests", "instance_epochs", "jobs"])
def test_a_run_without_the_tables_has_no_services(run, name):
    run.file(name).unlink()
    assert services(run) == []
