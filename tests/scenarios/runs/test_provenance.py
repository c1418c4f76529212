"""What counts as the code that makes a run, or concludes of one."""

import subprocess
import sys

from scenarios.kinds import KINDS
from scenarios.runs import provenance
from scenarios.runs.provenance import conclusion_digest, source_of_run


def test_what_symbolises_is_part_of_a_profiled_runs_digest():
    """Whatever of `analysis` is loaded to symbolise counts; `models` does anyway."""
    code = "import sys, analysis.profiling.symbolise; print(*(m for m in sys.modules if m.startswith('analysis.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) - {"analysis.profiling"} == {name for name in KINDS["profile"].makers if "analysis" in name}
    assert source_of_run("profile") != source_of_run("fleet")


def test_a_conclusion_is_of_all_code_and_of_the_libraries_that_it_computes_with(monkeypatch):
    before = conclusion_digest()
    assert before == conclusion_digest()
    known = provenance._version
    monkeypatch.setattr(provenance, "_version", lambda name: "0" if name == "ortools" else known(name))
    assert conclusion_digest() != before
