"""Traces of Perfetto, which are recognised and not read.

Source: Perfetto's `protos/perfetto/trace/trace.proto`, `trace_packet.proto` and its guide to `traceconv`.
"""

from analysis.profiling.formats.wire import Wire
from analysis.tables.faults import FileError

CONVERTER = "traceconv profile --perf FILE writes pprof of its call stacks, traceconv profile FILE of its heap profiles"
_PACKET = 0x0A
_PACKETS = 50
"""How many packets are looked at."""
_LEAST_FIELD = 6
"""Lower numbers have the fields of what else such a file could hold: pprof's `ValueType`, OTLP's `ResourceProfiles`."""


def is_perfetto(data: bytes) -> bool:
    """Return whether bytes begin with packets of a trace alone, one of which has a field that only these have.

    Examples
    --------
    >>> clock, sequence = bytes([10, 2, 64, 7]), bytes([10, 3, 80, 200, 1])
    >>> is_perfetto(clock + sequence), is_perfetto(bytes([10, 4, 8, 1, 16, 2])), is_perfetto(b"main;f 3")
    (True, False, False)
    """
    wire, at, recognised = Wire(data, ""), 0, False
    try:
        for _ in range(_PACKETS):
            if at >= len(data):
                break
            if data[at] != _PACKET:
                return False
            length, begin = wire.varint(at + 1, len(data))
            at = begin + length
            if at > len(data):  # the file was cut
                break
            tag, _ = wire.varint(begin, at) if length else (0, begin)
            recognised |= tag >> 3 >= _LEAST_FIELD
    except FileError:
        return False
    return recognised
