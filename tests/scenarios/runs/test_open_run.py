"""Manifests that somebody changed: told as their fault, whatever they hold."""

import json

import pandas as pd
import pytest

from scenarios.files.faults import FaultsError
from scenarios.files.schema import SCENARIO, SERVICE, ServiceScenario
from scenarios.runs.disk import JsonError, file_digest, json_of
from scenarios.runs.execution import reopen
from scenarios.runs.rundir import Run, RunError, open_run

JOBS = pd.DataFrame({"job": [0, 1], "name": ["a", "b"], "latency_critical": True, "instances": 2, "quota_vcpu": 1.5})


@pytest.fixture
def folder(tmp_path):
    def written(manifest):
        (tmp_path / "manifest.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
        return tmp_path

    return written


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"tables": {"jobs": 3}}, "tables"),
        ({"tables": {"jobs": {"rows": "2"}}}, "tables"),
        ({"tables": {"jobs": {"partitions": [1]}}}, "tables"),
        ({"tables": {}, "cells": {"c0001": {}}}, "cells"),
        ({"tables": {}, "counts": [1], "seed": "7"}, "counts, seed"),
        ({"tables": {}, "resolved": None}, "resolved"),
    ],
)
def test_a_manifest_of_another_shape_is_refused_with_what_is_wrong(folder, said, named):
    with pytest.raises(RunError, match=f"manifest.json does not hold what wsc run writes as {named}$"):
        open_run(folder(said))


def test_a_manifest_that_is_nested_too_deeply_is_refused(folder):
    with pytest.raises(RunError, match=r"manifest.json cannot be read: is nested too deeply$"):
        open_run(folder("[" * 100_000))


def test_what_a_manifest_does_not_say_is_told(folder):
    run = open_run(folder({"tables": {}}))
    assert run.manifest.get("seed") is None
    with pytest.raises(RunError, match=r"manifest.json does not say seed$"):
        run.manifest["seed"]


@pytest.mark.parametrize("resolved", [{"fleet": {"machines": "many"}}, {"sed": 1}])
def test_a_scenario_of_another_version_is_refused(folder, resolved):
    run = open_run(folder({"tables": {}, "resolved": resolved}))
    with pytest.raises(RunError, match="the manifest holds no scenario: 2 faults"):
        run.world(SCENARIO)


def test_a_number_of_thousands_of_digits_is_refused(tmp_path):
    (tmp_path / "piece.json").write_text('{"seed": ' + "9" * 5000 + "}")
    with pytest.raises(JsonError, match="Exceeds the limit"):
        json_of(tmp_path / "piece.json")


def test_a_table_that_was_changed_into_what_it_cannot_be_is_refused_where_it_is_read(tmp_path):
    file = tmp_path / "jobs.parquet"
    JOBS.to_parquet(file)
    run = Run(tmp_path, {"tables": {"jobs": {"rows": 2, "file_digest": file_digest(file)}}})
    assert len(run.table("jobs")) == 2
    JOBS.assign(quota_vcpu=float("nan"), job=0).to_parquet(file)
    with pytest.raises(FaultsError) as caught:
        run.table("jobs", ["job"])
    assert [(fault.line, fault.field, fault.problem) for fault in caught.value.faults] == [
        (0, "quota_vcpu", "should be a number"),
        (3, "job", "should be there once"),
    ]
    JOBS.assign(quota_vcpu=2.0).to_parquet(file)
    assert run.table("jobs")["quota_vcpu"].tolist() == [2.0, 2.0]


def test_a_scenario_with_a_platform_that_there_is_not_is_refused(folder):
    scenario = SERVICE.dump_python(ServiceScenario(name="moved", platforms=("piii", "xeon_0")), mode="json")
    with pytest.raises(RunError, match="the manifest holds no scenario: 1 faults"):
        reopen(folder({"kind": "cross_platform", "tables": {}, "resolved": scenario}))
