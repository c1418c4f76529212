"""Text profiles that pprof had before profile.proto; expected values by the formulas of its reader, written out."""

import math
from collections import Counter

import pytest

from analysis.profiling.formats.reading import digest_of_content, read_foreign
from analysis.tables.faults import FileError


@pytest.fixture
def read(tmp_path):
    def of(text):
        path = tmp_path / "file"
        path.write_text(text)
        return read_foreign(path)

    return of


def totals(profile):
    return {measure.event: profile.total(measure.event) for measure in profile.measures}


def stacks(profile):
    return Counter(
        {
            tuple(
                profile.frames[at].function or hex(profile.frames[at].address) for at in sample.stack
            ): sample.amounts[-1]
            for sample in profile.samples
        }
    )


def scaled(count, size, period):
    scale = 1 / (1 - math.exp(-size / count / period))
    return int(count * scale), int(size * scale)


def test_a_heap_profile_of_go_is_scaled_up_and_has_the_symbols_of_its_comments(read):
    """Of a rate of 2 × 524,288 bytes, Go's two averages make one period."""
    text = (
        "heap profile: 3: 5120 [7: 600000] @ heap/1048576\n"
        "2: 4096 [4: 500000] @ 0x42 0x43\n"
        "#\t0x42\tmain.alloc+0x10\t/src/a.go:12\n"
        "#\t0x43\tmain.main+0x3\t/src/a.go:40\n\n"
        "1: 1024 [3: 100000] @ 0x43\n"
        "# runtime.MemStats\n# Alloc = 77\n"
    )
    profile = read(text)
    (n1, b1), (n2, b2) = scaled(2, 4096, 524288), scaled(1, 1024, 524288)
    (an1, ab1), (an2, ab2) = scaled(4, 500000, 524288), scaled(3, 100000, 524288)
    expected = {"alloc_objects": an1 + an2, "alloc_space": ab1 + ab2, "inuse_objects": n1 + n2, "inuse_space": b1 + b2}
    assert totals(profile) == expected
    assert stacks(profile) == {("main.alloc", "main.main"): b1, ("main.main",): b2}
    assert profile.frames[0].file == "/src/a.go"
    assert profile.notes == ()


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("1: 2 [1: 2] @ heapprofile", {"inuse_objects": 1, "inuse_space": 2}),
        ("1: 2 [3: 4] @ heapprofile", {"alloc_objects": 3, "alloc_space": 4, "inuse_objects": 1, "inuse_space": 2}),
        ("1: 2 [0: 0] @ heapz_v2/1", {"inuse_objects": 1, "inuse_space": 2}),
        ("1: 2 [3: 4] @ growthz", {"objects": 1, "space": 2}),
        ("1: 2 [3: 4] @ fragmentationz", {"objects": 1, "space": 2}),
    ],
)
def test_heaps_that_are_not_sampled_are_as_they_are(read, head, values):
    memory = "MAPPED_LIBRARIES:\n1000-2000 r-xp 00000000 08:01 7 /bin/a\n"
    text = f"heap profile: {head}\n1: 2 [3: 4] @ 0x1010 0x1020\n{memory}"
    profile = read(text)
    assert totals(profile) == values
    assert [(frame.address, frame.image) for frame in profile.frames] == [(0x100F, "/bin/a"), (0x101F, "/bin/a")]
    assert (profile.main, profile.notes) == (
        "/bin/a",
        ("it has no symbols: functions are [unknown], unless --binary names them",),
    )


def test_contention_is_scaled_by_its_period_and_the_clock(read):
    text = (
        "--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 100\n"
        "  19490304       27 @ 0x10 0x20\n       768        1 @ 0x10\n--- Memory map: ---\n  00000000-00001000: app\n"
    )
    assert totals(read(text)) == {"contentions": 2800, "delay": 19490304 * 50 + 768 * 50}
    assert totals(read("--- mutex:\ncycles/second=1000000000\n5 2 @ 0x1 0x2\n")) == {"contentions": 2, "delay": 5}


def test_threads_count_and_equal_stacks_are_said_once(read):
    text = (
        "--- threadz 1 ---\n\n--- Thread 7f794 (name: main/1) stack: ---\n  PC:  0x50: helper(arg *)\n  0x0040: main\n"
        "--- Thread 7f795 (name: t/2) stack: ---\n  [same as previous thread]\n"
        "--- Thread 7f796 (name: t/3) stack: ---\n  PC:  0x70: wait\n      creator: 0x90 0xa0\n--- Memory map: ---\n"
    )
    assert stacks(read(text)) == {("0x50", "0x3f"): 2, ("0x70", "0x8f", "0x9f"): 1}


def test_counts_of_go_have_the_name_of_what_is_counted(read):
    symbols = "#\t0x1\tmain.f+0x1\t/a.go:3\n#\t0x2\tmain.g+0x1\t/a.go:9\n"
    text = f"goroutine profile: total 12\n11 @ 0x1 0x2\n{symbols}\n1 @ 0x2\n"
    profile = read(text)
    assert totals(profile) == {"goroutine": 12}
    assert stacks(profile) == {("main.f", "main.g"): 11, ("main.g",): 1}


def test_go_names_calls_by_the_address_before_that_to_which_they_return_and_inlined_functions_too(read):
    text = (
        "--- mutex:\ncycles/second=1000000000\nsampling period=1\n"
        "50 2 @ 0x401000 0x402000\n#\t0x400fff\tsync.(*Mutex).Unlock+0x1f\t\t/go/mutex.go:214\n"
        "#\t0x401fff\tmain.inlined+0x2f\t/app/main.go:7\n#\t0x401fff\tmain.worker+0x2f\t/app/main.go:31\n"
    )
    profile = read(text)
    assert stacks(profile) == {("sync.(*Mutex).Unlock", "main.inlined", "main.worker"): 50}
    assert [frame.line for frame in profile.frames] == [214, 7, 31]
    assert profile.notes == ()


def test_frames_of_gos_runtime_that_it_does_not_print_are_left_out_and_nameless_files_told(read):
    text = "goroutine profile: total 5\n4 @ 0x43 0x44 0x51\n#\t0x50\tmain.worker+0x45\t/m.go:20\n\n1 @ 0x43 0x60\n"
    profile = read(text)
    assert stacks(profile) == {("main.worker",): 4, ("0x42", "0x5f"): 1}
    assert read("\n".join(line for line in text.split("\n") if not line.startswith("#"))).notes == (
        "it has no symbols: functions are [unknown], unless --binary names them",
    )


def test_a_heap_of_java_has_a_table_of_functions(read):
    text = (
        "--- heapz 1 ---\nformat = java\nresolution = bytes\n      7048     1 @ 0x00000003 0x00000004\n\n\n"
        " 0x00000003 com.example.f (Source.java:103)\n 0x00000004 com.example.g (Native Method)\n"
    )
    assert stacks(read(text)) == {("com.example.f", "com.example.g"): scaled(1, 7048, 524288)[1]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("heap profile: 1: 2 [3: 4] @ heap/8\n1: x [3: 4] @ 0x1\n", "2: record: should have numbers, then addresses"),
        ("heap profile: 1: 2 [3: 4] @ heap/8\n", "records: should be at least one"),
        ("--- contentionz 1 ---\nsampling period = x\n1 2 @ 0x1\n", "sampling period: should be a whole number, got x"),
        (f"goroutine profile: total 1\n{10**20} @ 0x1\n", "2: record: should have numbers up to"),
        (f"goroutine profile: total 1\n{'9' * 5000} @ 0x1\n", "2: record: should have numbers, then addresses"),
        (f"heap profile: 1: {'9' * 5000} [1: 1] @ heap/1\n1: 1 [1: 1] @ 0x1\n", "should be a profile"),
        ("--- heapz 1 ---\n1 2 @ 0x1\n", "header: should be that of a heap profile"),
    ],
)
def test_faults_have_their_lines(read, text, problem):
    with pytest.raises(FileError) as caught:
        read(text)
    assert problem in str(caught.value)


def test_addresses_of_thousands_of_digits_are_addresses(read):
    """Python turns no text of so many decimal digits into a number, and no such number into a text."""
    text = f"--- threadz 1 ---\n\n--- Thread 7f (name: main/1) stack: ---\n  PC:  0x{'9' * 5000}: f\n"
    profile = read(text)
    assert profile.total("threads") == 1
    assert digest_of_content(profile)
    symbols = f"1 @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go:{'3' * 5000}\n"
    assert read("goroutine profile: total 1\n" + symbols).total("goroutine") == 1
