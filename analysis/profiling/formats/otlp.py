"""Profiles of OpenTelemetry (OTLP, v1development): protobuf or JSON, with their resources' and samples' attributes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.profiling.formats.foreign import ForeignProfile, Frame, Loaded, Measure, Origin
from analysis.profiling.formats.json_values import Object
from analysis.profiling.formats.stack_sums import StackSums
from analysis.profiling.formats.wire import Shape, Wire
from analysis.tables.faults import FileError, plain, refusal

_N, _NS, _T, _M, _MS = "number", "numbers", "text", "message", "messages"
_FIELDS: Mapping[str, Mapping[int, tuple[str, str, str]]] = {
    "data": {1: ("resourceProfiles", _MS, "resource_profiles"), 2: ("dictionary", _M, "dictionary")},
    "dictionary": {
        1: ("mappingTable", _MS, "mapping"),
        2: ("locationTable", _MS, "location"),
        3: ("functionTable", _MS, "function"),
        5: ("stringTable", "texts", ""),
        6: ("attributeTable", _MS, "attribute"),
        7: ("stackTable", _MS, "stack"),
    },
    "resource_profiles": {1: ("resource", _M, "resource"), 2: ("scopeProfiles", _MS, "scope_profiles")},
    "resource": {1: ("attributes", _MS, "key_value")},
    "key_value": {1: ("key", _T, ""), 2: ("value", _M, "any"), 3: ("keyStrindex", _N, "")},
    "any": {
        1: ("stringValue", _T, ""),
        2: ("boolValue", _N, ""),
        3: ("intValue", _N, ""),
        8: ("stringValueStrindex", _N, ""),
    },
    "scope_profiles": {2: ("profiles", _MS, "profile")},
    "profile": {
        1: ("sampleType", _M, "type"),
        2: ("samples", _MS, "sample"),
        3: ("timeUnixNano", "fixed", ""),
        4: ("durationNano", _N, ""),
        5: ("periodType", _M, "type"),
        6: ("period", _N, ""),
        11: ("attributeIndices", _NS, ""),
    },
    "type": {1: ("typeStrindex", _N, ""), 2: ("unitStrindex", _N, "")},
    "sample": {
        1: ("stackIndex", _N, ""),
        2: ("attributeIndices", _NS, ""),
        4: ("values", _NS, ""),
        5: ("timestampsUnixNano", "fixeds", ""),
    },
    "stack": {1: ("locationIndices", _NS, "")},
    "mapping": {
        1: ("memoryStart", _N, ""),
        2: ("memoryLimit", _N, ""),
        3: ("fileOffset", _N, ""),
        4: ("filenameStrindex", _N, ""),
        5: ("attributeIndices", _NS, ""),
    },
    "location": {1: ("mappingIndex", _N, ""), 2: ("address", _N, ""), 3: ("lines", _MS, "line")},
    "line": {1: ("functionIndex", _N, ""), 2: ("line", _N, "")},
    "function": {
        1: ("nameStrindex", _N, ""),
        2: ("systemNameStrindex", _N, ""),
        3: ("filenameStrindex", _N, ""),
        4: ("startLine", _N, ""),
    },
    "attribute": {1: ("keyStrindex", _N, ""), 2: ("value", _M, "any"), 3: ("unitStrindex", _N, "")},
}
"""Fields of opentelemetry-proto 1.10 (profiles/v1development/profiles.proto) by their numbers: name in JSON, kind, and
the message that it is. Others are skipped."""
_FIELD = "field of opentelemetry/proto/profiles/v1development/profiles.proto"
_ORIGINS: Mapping[str, str] = {
    "service.name": "application",
    "process.executable.name": "application",
    "process.pid": "process",
    "host.name": "machine",
    "host.id": "machine",
    "k8s.node.name": "machine",
    "cloud.region": "datacentre",
    "host.cpu.model.name": "platform",
    "os.version": "kernel",
}
"""Attributes that say where samples were taken, and what they say."""
_BUILDS = ("process.executable.build_id.gnu", "process.executable.build_id.go", "process.executable.build_id.htlhash")
_PROFILE_FIELDS = 3
_LAST_LINE = (1 << 31) - 1
_MOST_LABEL_VALUES = 1000


def is_otlp(data: bytes) -> bool:
    """Return whether bytes are such: messages of resources, and one dictionary that all share, as no pprof file has.

    Examples
    --------
    >>> is_otlp(bytes([10, 0, 18, 0])), is_otlp(bytes([10, 0, 50, 0])), is_otlp(b"main;f 3")
    (True, False, False)
    """
    wire, at, fields = Wire(data, ""), 0, [0, 0, 0]
    try:
        while at < len(data) and fields[2] < 2:
            tag, at = wire.varint(at, len(data))
            if tag not in {0x0A, 0x12}:
                return False
            length, at = wire.varint(at, len(data))
            at += length
            fields[tag >> 3] += 1
    except FileError:
        return False
    return at == len(data) and fields[2] == 1


def is_otlp_json(content: Object) -> bool:
    """Return whether JSON is such."""
    return "resourceProfiles" in content


def read_otlp(data: bytes, name: str = "profiles.otlp") -> ForeignProfile:
    """Read OTLP profiles in protobuf; see `read_otlp_json`.

    Parameters
    ----------
    data : the file's bytes
    name : of the file, for faults
    """
    return read_otlp_json(_decoded(Wire(data, name), "data", 0, len(data)), name)


def read_otlp_json(content: Object, name: str = "profiles.json") -> ForeignProfile:
    """Read OTLP profiles, as `ProfilesData` or the request of an export has them.

    Each type of samples becomes a measure; a sample with times alone counts as many as it has. Attributes of resources,
    profiles and samples become labels; those that name the service, process, host, region, processor or kernel also say
    that. An attribute of over a thousand values is left out, with a note.

    Parameters
    ----------
    content : of a JSON file, or decoded
    name : of the file, for faults
    """
    reader = _OtlpReader(content, name)
    return reader.profile()


def _decoded(wire: Wire, message: str, begin: int, end: int) -> Object:
    """Return a message as its JSON would be, with numbers for texts of numbers."""
    known = _FIELDS[message]
    kinds = {key: kind for key, (_, kind, _) in known.items()}
    numbers = frozenset(key for key, kind in kinds.items() if kind == _N)
    packed = frozenset(key for key, kind in kinds.items() if kind == _NS)
    lengths = frozenset(key for key, kind in kinds.items() if kind in {_T, "texts", _M, _MS, "fixeds"})
    shape = Shape(message, numbers, packed, lengths)
    read = wire.message(shape, begin, end)
    content: dict[str, Any] = {}
    for key, (field_name, kind, of) in known.items():
        spans = read.lengths.get(key, [])
        if kind == _N and key in read.numbers:
            content[field_name] = _signed(read.number(key))
        elif kind == _NS and key in read.numbers:
            content[field_name] = [_signed(number) for number in read.numbers[key]]
        elif kind == _M and spans:
            content[field_name] = _decoded(wire, of, *spans[-1])
        elif kind == _MS and spans:
            content[field_name] = [_decoded(wire, of, *span) for span in spans]
        elif kind in {_T, "texts"} and spans:
            texts = [plain(wire.data[first:last].decode(errors="replace")) for first, last in spans]
            content[field_name] = texts if kind == "texts" else texts[-1]
        elif kind == "fixeds" and spans:
            content[field_name] = [0] * sum((last - first) // 8 for first, last in spans)
    if message == "profile":
        content["timeUnixNano"] = _fixed64(wire, 3, begin, end)
    return content


def _fixed64(wire: Wire, key: int, begin: int, end: int) -> int:
    """Return a field of a fixed width; 0 if there is none. The message was read before, so it is whole."""
    at, value = begin, 0
    while at < end:
        tag, at = wire.varint(at, end)
        if tag & 7 == 1:
            value = int.from_bytes(wire.data[at : at + 8], "little") if tag >> 3 == key else value
            at += 8
        elif tag & 7 == 5:
            at += 4
        else:
            number, at = wire.varint(at, end)
            at += number if tag & 7 == 2 else 0
    return value


@dataclass(slots=True)
class _OtlpReader:
    content: Object
    name: str
    measures: dict[Measure, int] = field(default_factory=dict)
    values: dict[str, set[str]] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)
    start_s: float = float("nan")
    length_s: float = 0.0
    tables: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def profile(self) -> ForeignProfile:
        """Return all profiles of the file as one."""
        dictionary = self._object(self.content, "dictionary")
        names = [name for name, *_ in _FIELDS["dictionary"].values()]
        self.tables = {name: self._list(dictionary, name) for name in names}
        profiles = list(self._profiles())
        self.measures = {self._measure(profile): 0 for profile, _ in profiles}
        places = {measure: at for at, measure in enumerate(self.measures)}
        rows = [
            (stack, places[self._measure(profile)], value, labels)
            for profile, attributes in profiles
            for stack, value, labels in self._samples(profile, attributes)
        ]
        if not rows:
            raise refusal(self.name, "samples", "should be at least one", "none")
        sums = StackSums(self.name, len(places))
        origins: dict[tuple[tuple[str, str], ...], Origin] = {}
        stacks: dict[int, list[Frame]] = {}
        for stack, at, value, labels in rows:
            amounts = [0] * len(places)
            amounts[at] = value
            if stack not in stacks:
                stacks[stack] = self._stack(stack)
            if labels not in origins:
                origins[labels] = self._origin(labels)
            sums.add(stacks[stack], amounts, origins[labels])
        names_left = ", ".join(list(self.left_out)[:20])
        notes = (f"labels of over {_MOST_LABEL_VALUES:,} values are left out: {names_left}",) if names_left else ()
        return ForeignProfile(
            tuple(places),
            tuple(sums.frames),
            sums.samples(),
            tuple(sums.origins),
            name=self.name,
            start_s=self.start_s,
            length_s=self.length_s,
            notes=notes,
        )

    def _profiles(self) -> Iterator[tuple[Object, list[tuple[str, str]]]]:
        """Yield profiles with the attributes of their resources and their own."""
        for resource in self._objects(self.content, "resourceProfiles"):
            attributes = self._objects(self._object(resource, "resource"), "attributes")
            of_resource = [self._key_value(item) for item in attributes]
            for scope in self._objects(resource, "scopeProfiles"):
                for profile in self._objects(scope, "profiles"):
                    start_s = self._number(profile, "timeUnixNano") / 1e9
                    if start_s > 0 and not self.start_s <= start_s:
                        self.start_s = start_s
                    self.length_s = max(self.length_s, self._number(profile, "durationNano") / 1e9)
                    yield profile, [*of_resource, *self._attributes(profile)]

    def _measure(self, profile: Object) -> Measure:
        """Return what a profile's samples count; their period if it is of that type."""
        kind, sampled = self._object(profile, "sampleType"), self._object(profile, "periodType")
        named = [self._text(self._number(kind, key)) for key in ("typeStrindex", "unitStrindex")]
        period = [self._text(self._number(sampled, key)) for key in ("typeStrindex", "unitStrindex")]
        every = max(self._number(profile, "period"), 1) if named == period else 1
        return Measure(named[0] or "samples", named[1] or "count", every)

    def _samples(
        self, profile: Object, attributes: list[tuple[str, str]]
    ) -> Iterator[tuple[int, int, tuple[tuple[str, str], ...]]]:
        for sample in self._objects(profile, "samples"):
            values = [self._whole(value, "values") for value in self._list(sample, "values")]
            value = sum(values) if values else len(self._list(sample, "timestampsUnixNano"))
            labels = dict(attributes) | dict(self._attributes(sample))
            yield self._number(sample, "stackIndex"), value, tuple(sorted(self._few(labels).items()))

    def _few(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return labels without those that have too many values."""
        for key, text in labels.items():
            known = self.values.setdefault(key, set())
            if key not in self.left_out and text not in known:
                known.add(text)
                if len(known) > _MOST_LABEL_VALUES:
                    self.left_out[key] = None
        return {key: text for key, text in labels.items() if key not in self.left_out}

    def _origin(self, labels: Sequence[tuple[str, str]]) -> Origin:
        labelled = {key: text for key, text in labels if key not in self.left_out}
        known: dict[str, str] = {}
        for key, where in _ORIGINS.items():
            if key in labelled:
                known.setdefault(where, labelled[key])
        return Origin(**known, labels=tuple(sorted(labelled.items())))

    def _stack(self, at: int) -> list[Frame]:
        """Return the frames of a stack, the innermost first."""
        if not self.tables["stackTable"]:
            problem = "should have a stackTable, as since opentelemetry-proto 1.8: convert with a newer collector"
            raise refusal(self.name, "dictionary", problem, "none")
        stack = self._entry("stackTable", at)
        frames: list[Frame] = []
        for index in self._list(stack, "locationIndices"):
            frames += self._frames(self._entry("locationTable", self._whole(index, "locationIndices")))
        return frames

    def _frames(self, location: Object) -> list[Frame]:
        mapping = self._number(location, "mappingIndex")
        of = self._entry("mappingTable", mapping) if mapping else {}
        image = self._text(self._number(of, "filenameStrindex"))
        builds = dict(self._attributes(of))
        build = next((builds[key] for key in _BUILDS if key in builds), "")
        address = self._number(location, "address")
        frames = []
        for line in self._objects(location, "lines"):
            function = self._entry("functionTable", self._number(line, "functionIndex"))
            name, system, file = (
                self._text(self._number(function, key))
                for key in ("nameStrindex", "systemNameStrindex", "filenameStrindex")
            )
            first, at = self._number(function, "startLine"), self._number(line, "line")
            frames.append(Frame(name or system, image, build, file, _line(first), _line(at), address))
        if frames:
            return frames
        start, end, offset = (self._number(of, key) for key in ("memoryStart", "memoryLimit", "fileOffset"))
        part = Loaded(image, start=start, end=end, offset=offset)
        return [Frame("", image, build, address=address, file_address=part.file_address(address))]

    def _attributes(self, item: Object) -> Iterator[tuple[str, str]]:
        for index in self._list(item, "attributeIndices"):
            yield self._key_value(self._entry("attributeTable", self._whole(index, "attributeIndices")))

    def _key_value(self, item: Object) -> tuple[str, str]:
        """Return an attribute's key and value as text; values that are lists or maps are empty."""
        key = item.get("key") or self._text(self._number(item, "keyStrindex"))
        value = self._object(item, "value")
        unit = self._text(self._number(item, "unitStrindex"))
        if "stringValueStrindex" in value:
            return key, self._text(self._number(value, "stringValueStrindex"))
        known = next(
            (value[kind] for kind in ("stringValue", "intValue", "doubleValue", "boolValue") if kind in value), ""
        )
        return plain(str(key)), plain(f"{known} {unit}".strip())

    def _entry(self, table: str, at: int) -> Object:
        entries = self.tables[table]
        if not 0 <= at < len(entries) or not isinstance(entries[at], Mapping):
            raise refusal(self.name, table, f"should have an entry {at}", f"{len(entries)} entries")
        entry: Object = entries[at]
        return entry

    def _text(self, at: int) -> str:
        texts = self.tables["stringTable"]
        if not at and not texts:
            return ""
        if not 0 <= at < len(texts) or not isinstance(texts[at], str):
            raise refusal(self.name, "stringTable", f"should have a text {at}", f"{len(texts)} entries")
        return plain(texts[at])

    def _number(self, item: Object, key: str) -> int:
        return self._whole(item.get(key, 0), key)

    def _whole(self, value: object, key: str) -> int:
        """Return a whole number, which JSON may write as a text."""
        if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) <= 20:
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise refusal(self.name, key, "should be a whole number", value)
        return value

    def _object(self, item: Object, key: str) -> Object:
        value = item.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise refusal(self.name, key, "should be an object", value)
        return value or {}

    def _objects(self, item: Object, key: str) -> Sequence[Object]:
        listed = self._list(item, key)
        for value in listed:
            if not isinstance(value, Mapping):
                raise refusal(self.name, key, "should be a list of objects", value)
        return listed

    def _list(self, item: object, key: str) -> Sequence[Any]:
        value = item.get(key) if isinstance(item, Mapping) else None
        if value is None and isinstance(item, Mapping):
            return ()
        if not isinstance(value, list):
            raise refusal(self.name, key, "should be a list", value)
        return value


def _line(number: int) -> int:
    return number if 0 < number <= _LAST_LINE else 0


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
