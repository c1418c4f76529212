"""`import wsc`: what it offers is what the commands answer."""

import inspect
import json
import os
import pickle
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import wsc
from scenarios.commands.app import app
from tests.helpers.company_export import COLUMNS, company_export

EXAMPLES = Path("docs/examples")


def command(*arguments):
    ended = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert ended.exit_code in {0, 1}, ended.output
    return json.loads(ended.output)


def plain(answer):
    """Return what a conclusion's payload becomes as JSON; it is also a line, a frame and something for notebooks."""
    from scenarios.views.terminal import line

    assert re.fullmatch(r"<\w+: .{1,90}>", repr(answer))
    assert not re.search(r": \d+ rows>$", repr(answer))
    assert isinstance(answer.frame(), pd.DataFrame)
    assert answer._repr_html_().startswith('<div class="wsc">')
    return json.loads(line(answer.payload()))


def drawn(answer):
    """Return the names of both axes of each panel of an answer's figure, which can be shown."""
    figure = answer.figure()
    assert figure._repr_png_().startswith(b"\x89PNG")
    return [(panel.get_xlabel(), panel.get_ylabel()) for panel in figure.axes]


def test_names_are_few_and_all_there():
    assert len(wsc.__all__) <= 40
    assert len(set(wsc.__all__)) == len(wsc.__all__)
    assert [name for name in wsc.__all__ if ">>> " not in getattr(wsc, name).__doc__] == []
    assert [name for name in wsc.__all__ if f"`{name}`" not in Path("docs/python.md").read_text()] == []
    assert wsc.__version__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = wsc.nothing


def test_importing_it_loads_nothing_heavy():
    code = "import wsc, sys; print(sorted({'pandas', 'numpy', 'numba', 'duckdb'} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_an_effect_of_frames_is_that_of_the_command():
    files = [EXAMPLES / "fleet_before.csv", EXAMPLES / "fleet_after.csv"]
    jobs = EXAMPLES / "fleet_jobs.csv"
    said = command("effect", *files, "--jobs", jobs, "--per-job")
    answer = wsc.effect(pd.concat(map(pd.read_csv, files)), jobs=pd.read_csv(jobs))
    assert (answer.change, answer.low, answer.high) == pytest.approx((said["change"], said["low"], said["high"]))
    assert answer.jobs()["job"].tolist() == [row["job"] for row in said["per_job"]]
    for word, count in answer.jobs()["verdict"].value_counts().items():
        assert f"{count} {word}" in answer._repr_html_()
    assert plain(wsc.effect(*files, jobs=jobs)) == said
    assert repr(answer) == f"<EffectAnswer: {said['verdict']}>"
    assert "zero is ruled out" in answer._repr_html_()
    assert drawn(answer) == [("change of the fleet", ""), ("change of a job", "")]
    names = [text.get_text() for text in answer.figure().axes[0].get_yticklabels()]
    assert names == ["adjusted", "published"]


def test_an_audit_a_design_and_a_look_are_those_of_the_commands():
    files = [EXAMPLES / "fleet_before.csv", EXAMPLES / "fleet_after.csv"]
    audited, looks = wsc.audit(*files), wsc.monitor(*files)
    assert plain(audited) == command("audit", *files)
    assert plain(looks) == command("monitor", *files)
    said = command("design", files[0], "--detect", "5%", "--days", "1", "--draws", "100")
    planned = wsc.design(files[0], detect=0.05, days=1, draws=100)
    assert plain(planned) == said
    assert drawn(looks) == [("period", "change so far")]
    assert drawn(planned) == [("machines with the feature", "smallest change seen")]
    with pytest.raises(wsc.WscError, match=r"^AuditAnswer has no figure; \.frame\(\) has its numbers$"):
        audited.figure()


def test_an_export_is_read_by_expressions():
    export = company_export(rows=14_000)
    rows = wsc.read(export, columns=COLUMNS, period="1d", skip_bad=0.03)
    assert sorted(rows["period"].unique()) == list(range(1, 15))
    assert wsc.effect(export, columns=COLUMNS, period="1d", skip_bad=0.03).machines == 424
    with pytest.raises(wsc.WscError, match="column is missing"):
        wsc.read(export)


def test_a_recipe_beside_a_table_is_read_as_by_the_command(tmp_path):
    company_export(rows=7_000).to_csv(tmp_path / "export.csv", index=False)
    names = "".join(f"  {name}: {json.dumps(text)}\n" for name, text in COLUMNS.items())
    (tmp_path / "export.columns.yaml").write_text(f"columns:\n{names}period: 1d\nskip_bad: 3%\n")
    path = tmp_path / "export.csv"
    assert plain(wsc.effect(path)) == command("effect", path, "--per-job")
    with pytest.raises(wsc.WscError, match="period: should be a time above 0"):
        wsc.read(path, period="never")


def test_requests_are_answered_as_by_the_command():
    log = EXAMPLES / "requests.csv"
    said = command("occupancy", log, "--servers", "4", "--to", "8")
    answer = wsc.requests(log, servers=4, to=[8])
    assert plain(answer) == said
    assert drawn(answer) == [("time (s)", "mean number of requests"), ("servers", "queueing time of a request (s)")]
    assert len(drawn(wsc.requests(log, servers=4))) == 1
    renamed = pd.read_csv(log).rename(columns={"arrival_ms": "began", "departure_ms": "ended"})
    again = wsc.requests(renamed, servers=4, arrival="began", departure="ended", unit="ms")
    assert again.queueing_time_s == pytest.approx(said["queueing_time_s"])
    with pytest.raises(wsc.WscError, match=r'^table:3:1: arrival_s: should be a number, got "x"$'):
        wsc.requests(pd.DataFrame({"arrival_s": [0.0, "x"], "departure_s": [2.0, 0.5]}), servers=1)
    with pytest.raises(wsc.WscError, match="policy: should be one of auto, fcfs"):
        wsc.requests(log, servers=4, policy="fifo")


def test_a_service_is_predicted_as_by_the_command():
    log = EXAMPLES / "service.csv.gz"
    said = command("predict", log, "--from", "piii", "--to", "pres")
    service = wsc.service(log, "piii")
    answer = service.predict(["pres"])
    assert plain(answer) == said
    assert drawn(answer) == [("CPU time of a request (ms)", ""), ("mean response time (ms)", "")]
    selected = service.select(0.15, ["pres"])
    assert plain(selected) == command("select", log, "--from", "piii", "--bound", "150ms", "--to", "pres")
    assert drawn(selected) == [("requests per second and watt of TDP", "")]
    assert repr(service) == "<Service: service.csv.gz on piii>"
    again = wsc.service(pd.read_csv(log), "piii").predict(["pres"])
    pd.testing.assert_frame_equal(again.frame(), answer.frame())
    ratio = ("--to", "graviton_4", "--instruction-ratio", "0.9,1.2")
    foreign = service.predict("graviton_4", instruction_ratio=(0.9, 1.2))
    assert plain(foreign) == command("predict", log, "--from", "piii", *ratio)
    assert plain(wsc.platforms("pres")) == command("platforms", "pres")


def test_a_profile_is_asked_as_by_the_command():
    stacks = EXAMPLES / "stacks.folded"
    answer = wsc.profile(stacks).top()
    assert plain(answer) == command("profile", "query", stacks)
    assert drawn(answer) == [("share of samples", "")]
    difference = wsc.profile(stacks).diff(wsc.profile(stacks))
    assert plain(difference) == command("profile", "diff", stacks, stacks)
    assert drawn(difference) == [("change of the share of samples", "")]


def test_files_of_drawn_machines_have_intervals_and_regressions():
    files = [[EXAMPLES / f"profiles/{side}-{i:02}.pb.gz" for i in (1, 2, 3)] for side in ("before", "after")]
    before, after = (wsc.profile(*each, drawn_from=240) for each in files)
    assert {"low", "high"} <= set(before.top(top=2).frame())
    assert plain(before.regress(after)) == command("profile", "regress", *before.paths, *after.paths)
    asked = {"event": "samples", "min_factor": 1.1, "false_alarms": 0.05, "adjustment": "benjamini-hochberg"}
    options = [word for name, value in asked.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert plain(before.regress(after, **asked)) == command("profile", "regress", *before.paths, *after.paths, *options)
    for answer in (
        before.top(event="samples"),
        before.diff(after, event="samples"),
        before.cumulative(event="samples"),
    ):
        assert answer.payload()["event"] == "samples"
    assert before.callers("operator delete", event="samples").payload()["event"] == "samples"
    assert plain(before.watch("cpu")) == command("profile", "watch", *before.paths, "--event", "cpu")
    stricter = before.watch("cpu", bin_s=7200.0, min_factor=1.1, min_cost=0.001, false_alarms=0.05)
    words = ("--bin", "2h", "--min-factor", "1.1", "--min-cost", "0.001", "--false-alarms", "0.05")
    assert plain(stricter) == command("profile", "watch", *before.paths, "--event", "cpu", *words)
    assert repr(before) == "<Profile: profile>"
    assert repr(wsc.profile(*files[0])) == "<Profile: before-01.pb.gz and 2 more>"
    folder = before.paths[0].parent
    del before
    assert not folder.exists()


def test_plans_and_estimates_are_those_of_the_commands():
    before, after = EXAMPLES / "before.csv", EXAMPLES / "after.csv"
    assert plain(wsc.estimate(before, after)) == command("wsmeter", "estimate", "--current", before, "--new", after)
    assert drawn(wsc.estimate(before, after)) == [("change of the fleet", "")]
    frames = pd.read_csv(before), pd.read_csv(after)
    assert plain(wsc.estimate(*frames))["estimates"] == plain(wsc.estimate(before, after))["estimates"]


def test_plans_jobs_and_rows_of_papers_are_those_of_the_commands(tmp_path):
    services, pairs = EXAMPLES / "services.csv", EXAMPLES / "affinity.csv"
    assert plain(wsc.plan(services, margin=0.03)) == command("wsmeter", "plan", services, "--margin", "3%")
    assert plain(wsc.affinity(pairs)) == command("affinity", pairs)
    assert plain(wsc.library()) == command("scenarios")
    row = wsc.reproduce("wsmeter/table2", out=tmp_path, runs=tmp_path)
    assert plain(row) == command("reproduce", "wsmeter/table2", "--out", tmp_path, "--runs", tmp_path)


def test_runs_and_validations_are_those_of_the_commands(tmp_path):
    measured = wsc.measure(wsc.simulate("queue_small", out=tmp_path, horizon_s=60))
    assert plain(measured) == command("run", "queue_small", "--set", "horizon_s=60", "--out", tmp_path)
    fleet = {"fleet.machines": 60, "horizon_s": 14400, "analyses.wsmeter.machines": [10], "analyses.wsmeter.draws": 5}
    judged = wsc.validate("small", out=tmp_path, **{key.replace(".", "__"): value for key, value in fleet.items()})
    options = [word for key, value in fleet.items() for word in ("--set", f"{key}={value}")]
    assert plain(judged) == command("validate", "small", *options, "--out", tmp_path)


def small_table():
    rows = {"period": [0, 1] * 40, "job": "search", "machine": [f"m{i // 2}" for i in range(80)], "weight": 2.0}
    table = pd.DataFrame(rows).assign(treated=lambda t: ((t.period == 1) & (t.index < 40)).astype(int))
    return table.assign(value=1.0 + 0.1 * table.treated + 0.001 * (table.index % 7))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"confidance": 0.5}, r"^confidance: there is no such argument \(did you mean confidence\?\)$"),
        ({"wher": "a", "jbos": 3}, r"^jbos: .*did you mean jobs.*\nwher: .*did you mean where"),
        ({"zone": "Nowhere/City"}, '^zone: should be a time zone\'s name, such as .*, got "Nowhere/City"$'),
        (
            {"since": "2026-01-01", "until": "2026-02-01"},
            "^since: needs a period, such as 1d, got .*\nuntil: needs a period",
        ),
        ({"until": "x", "period": "1y"}, '^period: should be a time .*, got "1y"\nuntil: should be a point in time'),
        ({"skip_bad": 7.0}, "^skip_bad: should be a share between 0 and 1, such as 3% or 0.03, got 7.0$"),
        ({"skip_bad": -1}, "^skip_bad: should be a share .*, got -1$"),
        ({"skip_bad": "2 of 9"}, '^skip_bad: should be a share .*, got "2 of 9"$'),
        ({"columns": ["value"]}, r'^columns: should be expressions by our names, got \["value"\]$'),
    ],
)
def test_arguments_that_cannot_be_used_are_refused_by_name(given, message):
    with pytest.raises(wsc.WscError, match=message):
        wsc.effect(small_table(), **given)


def test_what_mends_a_table_is_said_as_an_argument():
    with pytest.raises(
        wsc.WscError, match=r'job: column is missing \(columns=\{"job": "EXPRESSION"\} makes it of yours\)'
    ):
        wsc.effect(small_table().rename(columns={"job": "service"}))


LOG = pd.DataFrame({"arrival_s": [0.0, 1.0, 1.5], "departure_s": [2.0, 3.0, 4.0]})
STACKS = EXAMPLES / "stacks.folded"
PIII = wsc.service(EXAMPLES / "service.csv.gz", "piii")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: wsc.requests(LOG, servers=2.5), "^servers: should be a whole number of at least 1, got 2.5$"),
        (
            lambda: wsc.requests(LOG, True, interval_s="1s"),
            '^interval_s: .* 0, or None, got "1s"\nservers: .*True$',
        ),
        (
            lambda: wsc.requests(LOG, 1, to=[2, 2.5]),
            "^to: should be a whole number .*, or several, got 2.5$",
        ),
        (lambda: wsc.requests(LOG, 1, polcy="fcfs"), r"^polcy: there is no such argument \(did you mean policy\?\)$"),
        (lambda: wsc.requests(pd.DataFrame(), 1), "^log: should have columns and rows, got an empty frame$"),
        (lambda: wsc.requests(3, 1), "^log: should be a frame, a path, a SELECT or a run, got 3$"),
        (lambda: wsc.requests([], 1), "^log: should be at least one file, got none$"),
        (lambda: wsc.requests([LOG], 1), "^log: should be a path or a run, got a DataFrame$"),
        (lambda: wsc.service(3, "piii"), "^log: should be a frame, a path, a SELECT or a run, got 3$"),
        (
            lambda: wsc.service(LOG, "piii").predict("pres"),
            "instructions: column is missing .*, got columns arr",
        ),
        (lambda: wsc.service(LOG, "piii", columns={"speed": "1"}), "^columns.speed: is no column of a service log; "),
        (lambda: wsc.affinity(LOG, columns={"cpy": "1"}), r"^columns.cpy: is none of our columns \(did you mean cpi"),
        (
            lambda: PIII.predict("graviton_4", instruction_ratio=(2, 1)),
            '^instruction_ratio: should be LOW,HIGH with .*, got "2.0,1.0"$',
        ),
        (lambda: PIII.predict("pd4", wsc.Finding), "^method: should be the name of a method, .*got the class Finding$"),
        (lambda: PIII.select("150ms"), '^bound_s: should be a number of seconds above 0, got "150ms"$'),
        (lambda: wsc.platforms(["piii"]), r'^names: should be text, got \["piii"\]$'),
        (wsc.profile, "^paths: should be one or more files, or runs, got none$"),
        (
            lambda: wsc.profile(STACKS).top(top="all", where="job=a"),
            '^top: .*or None, got "all"\nwhere: .*got "job=a"$',
        ),
        (lambda: wsc.profile(STACKS).diff(STACKS), "^other: should be a profile of wsc.profile, got a PosixPath$"),
        (lambda: wsc.profile(STACKS).top(by="nope"), '^by: unknown dimension "nope"; '),
        (lambda: wsc.profile(STACKS).regress(), "^at: one run needs a time that parts before from after$"),
        (lambda: wsc.profile(STACKS).top(event="nope"), '^event: unknown event "nope"; there are samples$'),
        (lambda: wsc.profile(STACKS).regress(adjustment="none"), '^adjustment: should be one of holm, .*got "none"$'),
        (lambda: wsc.profile(STACKS).regress(min_factor=0.5), "^min_factor.* at least 1"),
        (lambda: wsc.profile(STACKS).watch(min_factor=0.5, min_cost=2.0), "(?s)^min_factor.* at least 1.*min_cost"),
        (lambda: wsc.profile(STACKS).watch(""), '^event: unknown event ""; there are samples$'),
        (lambda: wsc.effect(pd.concat([LOG, LOG], axis=1)), "^table: .*, got arrival_s more than once$"),
        (lambda: wsc.effect(LOG.astype(complex)), "^table: .*, and no complex numbers, got complex128 in arrival_s$"),
        (lambda: wsc.affinity(pd.DataFrame()), "^table: should have columns and rows, got an empty frame$"),
        (lambda: wsc.affinity(LOG, method="nope"), '^method: should be one of lp, anneal, got "nope"$'),
        (lambda: wsc.load(None), "^run: should be a path, got None$"),
        (lambda: wsc.measure(3), "^run: should be a path or a run, got 3$"),
        (lambda: wsc.simulate("small", seed="a", force=1), '^force: .*True or False, got 1\nseed: .*or None, got "a"$'),
        (lambda: wsc.simulate("small", fleet__machines="x"), '^fleet.machines: should be a whole number, got "x"$'),
        (lambda: wsc.simulate("small", fleet__machines=LOG), "^fleet__machines: .* a scenario .*, got a DataFrame$"),
        (lambda: wsc.scorecard(designs=["night"]), '^designs: should be of day, week, .*, got "night"$'),
        (lambda: wsc.scorecard(corners="nowhere"), '^corners: should be of base, .*, got "nowhere"$'),
        (lambda: wsc.scorecard(fleets=0, sizes=[]), "^fleets: .*, got 0\nsizes: .* or several, got none$"),
        (lambda: wsc.effect(LOG, confidence="high"), '^confidence: should be a share .*, got "high"$'),
        (lambda: wsc.effect(LOG, about={"looks": 3}), '^about: should be the path of a file, .*, got {"looks": 3}$'),
        (lambda: wsc.effect(LOG, guards=3, metric="speed"), '^metric: should be one of ipc, .*, or None, got "speed"$'),
        (lambda: wsc.check_estimator(3), "^estimator: should be names, parts of your own .*, got 3$"),
        (lambda: wsc.validate("small", estimators=["adjusted", 3]), "^estimators: should be names, parts .*, got 3$"),
        (lambda: wsc.effect(LOG, guards=3), "^guards: should be names, parts of your own .*, got 3$"),
        (lambda: wsc.plan(LOG, "3%", min_instances=2.5), '^margin: .*, got "3%"\nmin_instances: .*, got 2.5$'),
    ],
)
def test_arguments_of_other_kinds_are_refused_with_what_is_wanted(ask, message):
    with pytest.raises(wsc.WscError, match=message):
        ask()


def test_signatures_have_types_without_bounds():
    shown = str(inspect.signature(wsc.requests))
    assert "servers: int, *, to: int | collections.abc.Sequence[int] = (), " in shown
    assert "interval_s: float | None = None" in shown


def test_numbers_of_numpy_and_single_values_are_taken():
    log = EXAMPLES / "requests.csv"
    answers = [wsc.requests(log, servers=np.int64(4), to=8), wsc.requests(log, 4, to=np.array([8]))]
    assert plain(answers[0]) == plain(answers[1])


def test_an_answer_cannot_be_changed():
    answer = wsc.effect(small_table())
    for name in ("change", "audit", "nothing"):
        with pytest.raises(AttributeError, match=f"^an answer cannot be changed: EffectAnswer.{name}$"):
            setattr(answer, name, 3)
    assert pickle.loads(pickle.dumps(answer)).change == answer.change


def test_a_share_may_be_written_as_on_the_command_line():
    table = small_table()
    assert wsc.read(table, skip_bad="2%").equals(wsc.read(table, skip_bad=0.02))
    for function in (wsc.audit, wsc.monitor, wsc.read):
        with pytest.raises(wsc.WscError, match="wher: there is no such argument"):
            function(table, wher="job = 'search'")


def test_queries_that_look_alike_are_tables_of_their_own(tmp_path):
    table = small_table()
    halves = [table[table.period == period] for period in (0, 1)]
    queries = []
    for period, rows in enumerate(halves):
        with closing(sqlite3.connect(tmp_path / f"{period}.db")) as database:
            rows.to_sql("t", database, index=False)
        queries.append(wsc.TableQuery("SELECT * FROM t", tmp_path / f"{period}.db"))
    rows = wsc.read(*queries)
    assert rows["file"].value_counts().to_dict() == {"SELECT * FROM t": 40, "SELECT * FROM t (table 2)": 40}
    assert wsc.effect(*queries).change == wsc.effect(table).change
    assert len(wsc.audit(*queries).frame()) == len(wsc.audit(table).frame())
    with pytest.raises(wsc.WscError, match=r"^SELECT \* FROM t: should be given once, got 2 times$"):
        wsc.read(queries[0], queries[0])
    table.to_csv(tmp_path / "all.csv", index=False)
    columns = "period, job, machine, weight, value, treated, 'the same long text' AS note"
    texts = [f"SELECT {columns} FROM '{tmp_path / 'all.csv'}' WHERE period = {period}" for period in (0, 1)]
    assert len(wsc.read(*texts)) == 80


def test_errors_survive_pickling():
    from analysis.statistics import NotEnoughDataError
    from analysis.tables.faults import FileError, FileFault
    from models.errors import ArgumentError
    from scenarios.files.faults import Fault, FaultsError

    def kinds(kind):
        return {kind}.union(*map(kinds, kind.__subclasses__()))

    errors = [kind.__new__(kind, "text") for kind in kinds(wsc.WscError)]
    errors += [NotEnoughDataError(3, 2, "machines"), FaultsError([Fault("a", 1, 2, "f", "bad", "3")])]
    errors += [FileError([FileFault(1, 2, "x", "bad", "3")], "a.pb", 4), ArgumentError("policy", "should be", "x")]
    assert len(errors) > 12
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.args, vars(again)) == (type(error), str(error), error.args, vars(error))


@pytest.mark.parametrize("package", ["models", "sim", "analysis", "scenarios"])
def test_somebody_elses_module_of_our_name_is_told_with_both_paths(tmp_path, package):
    (tmp_path / f"{package}.py").write_text("import wsc\n")
    ended = subprocess.run([sys.executable, f"{package}.py"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode != 0
    last = ended.stderr.splitlines()[-1]
    assert f"{tmp_path / package}.py stands in the way of our package {package} (" in last
    assert last.count(package) >= 3


def test_the_command_names_somebody_elses_module_in_one_line(tmp_path):
    (tmp_path / "models.py").write_text("")
    wsc_ = Path(sys.executable).with_name("wsc")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run([wsc_, "scenarios"], capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"wsc: {tmp_path / 'models.py'} stands in the way of our package models (")
    assert len(ended.stderr.splitlines()) == 1


def test_the_version_is_told():
    ended = CliRunner().invoke(app, ["--version"])
    assert (ended.exit_code, ended.output) == (0, f"wsc {wsc.__version__}\n")


@pytest.mark.parametrize("name", ["effect", "design", "monitor", "audit"])
def test_questions_about_experiments_have_the_options_of_their_commands(name):
    """But for those of columns, which `Columns` has, and of what is printed."""
    printed = {"json", "per_job", "list_"}
    of_columns = {"column", "database", "from_stamp", "until_stamp", "period", "rows_where", "skip_bad", "zone"}
    options = {option.name for option in typer.main.get_command(app).commands[name].params}
    assert options - printed - of_columns <= set(inspect.signature(getattr(wsc, name)).parameters)


def test_looks_are_as_often_as_the_team_looks():
    rows = pd.DataFrame({"period": list(range(6)) * 8, "machine": np.repeat(range(8), 6), "job": "a", "weight": 1.0})
    rows = rows.assign(treated=(rows["period"] > 1) & (rows["machine"] < 4), value=1 + rows.index * 7 % 11 / 100)
    assert [len(wsc.monitor(rows, every=every).frame()) for every in ("period", 2.0)] == [4, 2]
    for wrong, words in (("week", '"week"'), (0.0, "0")):
        with pytest.raises(
            ValueError, match=rf"^every: should be one of period, day, or a number above 0, got {words}"
        ):
            wsc.monitor(rows, every=wrong)
    with pytest.raises(ValueError, match=r"^spending: should be one of any-time, obrien-fleming, pocock, got "):
        wsc.monitor(rows, spending="late")
