"""Addresses get the names that the compiler gave them: a program of our own, run where the system loads it."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from analysis.profiling.formats.binaries import TOOLS, names_of, read_binary, unnamed, with_names
from analysis.profiling.formats.cpu_profile import read_cpu_profile
from analysis.profiling.formats.pprof import read_pprof
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.tables.faults import FileError
from scenarios.commands.app import app
from tests.analysis.profiling.formats.test_cpu_profile import packed

SOURCE = """
#include <stdio.h>
static inline __attribute__((always_inline)) char *here(void) {
    char *at;
    __asm__ volatile("call 1f\\n1: pop %0" : "=r"(at));
    return at;
}
__attribute__((noinline)) char *hot(void) { return here(); }
int main(void) {
    printf("%p %p\\n", (void *)hot(), (void *)((char *)main + 1));
    FILE *maps = fopen("/proc/self/maps", "r");
    for (int c; (c = fgetc(maps)) != EOF;) putchar(c);
    return 0;
}
"""
"""Prints where an inlined function was, where main is, and what is loaded where."""


def symbolised(profiles, binaries):
    """Return profiles with the functions that binaries name, and notes, as an import has them."""
    names, notes = names_of(dict.fromkeys(frame for profile in profiles for frame in unnamed(profile)), binaries)
    return [with_names(profile, names) for profile in profiles], notes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("binaries")
    (folder / "spin.c").write_text(SOURCE)
    compiler = ["gcc", "-O2", "-g", "-mno-red-zone", "-Wl,--build-id", "-o", folder / "spin", folder / "spin.c"]
    subprocess.run(compiler, check=True)
    first, maps = subprocess.run([folder / "spin"], capture_output=True, check=True).stdout.split(b"\n", 1)
    hot, main = (int(text, 16) for text in first.split())
    (folder / "cpu.prof").write_bytes(packed([(7, hot, main + 1), (3, main)], maps=maps))
    return folder


def functions(profile):
    """Functions of each stack, the innermost first, with how often it was sampled."""
    return {tuple(profile.frames[at].function for at in sample.stack): sample.amounts[0] for sample in profile.samples}


@pytest.mark.parametrize("tool", [name for name in TOOLS if shutil.which(name)])
def test_places_have_the_functions_of_the_source(folder, monkeypatch, tool):
    monkeypatch.setattr("analysis.profiling.formats.binaries.TOOLS", {tool: TOOLS[tool]})
    profile = read_cpu_profile((folder / "cpu.prof").read_bytes())
    (named,), notes = symbolised([profile], [read_binary(folder / "spin")])
    assert functions(named) == {("here", "hot", "main"): 7, ("main",): 3}
    assert {(frame.function, frame.file, frame.line) for frame in named.frames} >= {
        ("hot", str(folder / "spin.c"), 8),
    }
    assert notes == [f"{folder / 'spin'}: names 2 of 2 places without symbols"]


def test_a_debug_file_names_what_the_program_cannot(folder, tmp_path):
    for name in ("spin", "spin.debug"):
        shutil.copy(folder / "spin", tmp_path / name)
    subprocess.run(["strip", tmp_path / "spin"], check=True)
    profile = read_cpu_profile((folder / "cpu.prof").read_bytes())
    assert symbolised([profile], [read_binary(tmp_path / "spin")])[1] == [
        f"{tmp_path / 'spin'}: names 0 of 2 places without symbols"
    ]
    (named,), _ = symbolised([profile], [read_binary(tmp_path / "spin.debug")])
    assert ("main",) in functions(named)


def test_another_build_is_not_used(folder):
    """The ids decide where both sides have one, whatever the files are called."""
    binary = read_binary(folder / "spin")
    profile = read_cpu_profile((folder / "cpu.prof").read_bytes())
    own, other = (
        replace(profile, frames=tuple(frame._replace(build_id=build, image="elsewhere") for frame in profile.frames))
        for build in (binary.build_id.upper(), "0123")
    )
    assert len(binary.build_id) == 40
    assert functions(symbolised([own], [binary])[0][0]) == {("here", "hot", "main"): 7, ("main",): 3}
    renamed = replace(other, frames=tuple(frame._replace(image="/usr/bin/spin") for frame in other.frames))
    (left,), notes = symbolised([renamed], [binary])
    assert left == renamed
    assert notes == [f"{binary.path}: not used: its build id is {binary.build_id}, that of the profile's 0123"]
    assert "no place without symbols is of an image spin; they are of elsewhere" in symbolised([other], [binary])[1][0]


def test_places_without_a_place_in_the_file_are_told(folder):
    """The note said that no place is of an image spin, and that they are of spin."""
    binary, profile = read_binary(folder / "spin"), read_cpu_profile((folder / "cpu.prof").read_bytes())
    frames = tuple(frame._replace(image="/usr/bin/spin", build_id="", file_address=-1) for frame in profile.frames)
    _, notes = symbolised([replace(profile, frames=frames)], [binary])
    problem = "not used: the profile does not say from which bytes of spin its places were loaded"
    assert notes == [f"{binary.path}: {problem}"]


def test_names_that_are_there_stay(folder):
    profile = read_cpu_profile((folder / "cpu.prof").read_bytes())
    (named,), _ = symbolised([profile], [read_binary(folder / "spin")])
    assert functions(symbolised([read_pprof(write_pprof(named))], [read_binary(folder / "spin")])[0][0]) == functions(
        named
    )


def test_what_is_no_elf_file_is_told_with_all_others(folder, tmp_path):
    (tmp_path / "cut").write_bytes((folder / "spin").read_bytes()[:300])
    with pytest.raises(FileError, match="should be a whole ELF file"):
        read_binary(tmp_path / "cut")
    words = ["--binary", str(folder / "spin.c"), "--binary", str(tmp_path / "cut"), "--binary", str(tmp_path / "none")]
    done = CliRunner().invoke(
        app, ["profile", "import", str(folder / "cpu.prof"), "--out", str(tmp_path / "out"), *words]
    )
    assert done.exit_code == 2
    assert done.stderr.count("--binary: ") == 3
    assert "none is not there" in done.stderr
    assert not (tmp_path / "out").exists()


def test_without_a_tool_the_answer_is_what_to_install(folder, monkeypatch):
    monkeypatch.setattr("analysis.profiling.formats.binaries.TOOLS", {"no-such-tool": ()})
    profile = read_cpu_profile((folder / "cpu.prof").read_bytes())
    with pytest.raises(FileError, match="install binutils or llvm"):
        symbolised([profile], [read_binary(folder / "spin")])
