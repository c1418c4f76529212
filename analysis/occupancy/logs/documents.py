"""JSON of any length that is no line for each request: read value after value, and what is broken is located."""

import codecs
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from analysis.occupancy.logs.spans import (
    JAEGER_EXPORT,
    OTHER,
    OTLP,
    JsonRecord,
    attributes,
    form_of_object,
    listed,
    lost_of,
    resource_rows,
    rows_of,
    span_row,
    trace_rows,
)
from analysis.tables.bytes import salvaged, stream_of
from analysis.tables.faults import FileError, FileFault

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\n\r]*")
_BRACES = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
_NUMBERS = re.compile(r'"(?:[^"\\]|\\.)*"|-?([0-9][0-9.eE+-]*)', re.DOTALL)
_WORD = re.compile(r"[0-9A-Za-z.+-]*")
_LONGEST_WORD = 24
"""A number or a name that is cut off at the end of a piece may be wrong so far before it."""
_SHOWN = 40
_CONTAINERS = {"resourceSpans": OTLP, "data": JAEGER_EXPORT}
_SCOPES = ("scopeSpans", "instrumentationLibrarySpans")


class JsonText:
    """A JSON text that comes in pieces, of which no more is held than the value that is read.

    Examples
    --------
    >>> text = JsonText([b'[{"a": 1}, {"a"', b': 2}]'])
    >>> [text.value() for _ in text.items()]
    [{'a': 1}, {'a': 2}]
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._line, self._ended = "", 0, 1, False
        self._open = list[int]()
        """Lines in which objects begin whose members are read one by one."""

    def peek(self) -> str:
        """Return the next character that is not blank; nothing at the end."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def value(self) -> object:
        """Return the next value, for which pieces are read until it is whole."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                is_cut = error.pos > len(self._text) - _LONGEST_WORD or error.msg.startswith("Unterminated")
                if not (is_cut and self._more()):
                    expected = error.msg.removesuffix(" starting at").removesuffix(" at")
                    raise self._broken(error.pos, expected) from None
                continue
            except RecursionError:
                raise self._broken(self._at, "expecting fewer objects within each other") from None
            except ValueError:  # of int()
                self._shorten()
                continue
            if self._is_whole(end) or not self._more():
                self._at = end
                return value

    def _is_whole(self, end: int) -> bool:
        """Return whether a value that ends here ends here whatever follows: of ``1.5`` a piece may end at ``1.``."""
        if self._text[end - 1] in '"]}':
            return True
        rest = _WORD.match(self._text, end)
        return rest is not None and rest.end() < len(self._text)

    def _shorten(self) -> None:
        """Read on if a number is cut off that has too many digits so far; refuse it if it is whole."""
        digits, at = sys.get_int_max_str_digits(), self._at
        for token in _NUMBERS.finditer(self._text, self._at):
            if token[1] and token[1].isdigit() and len(token[1]) > digits:
                at = token.start()
                if token.end() == len(self._text) and self._more():
                    return
                break
        raise self._broken(at, f"expecting at most {digits:,} digits of a number")

    def whole(self) -> object:
        """Return the next value if it can be read of what there is; None if not."""
        self.peek()
        try:
            value, end = _DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            return None
        if self._text[end - 1] not in "]}":
            return None
        self._at = end
        return value

    def members(self) -> Iterator[str]:
        """Yield the names of an object's members; the value of each is to be read before the next."""
        self._take("{")
        self._open.append(self._line_at(self._at))
        while self.peek() != "}":
            if self._text[self._at : self._at + 1] != '"':
                raise self._broken(self._at, "expecting property name enclosed in double quotes")
            name = str(self.value())
            self._take(":")
            yield name
            self._next("}", "expecting property name enclosed in double quotes")
        self._take("}")
        self._open.pop()

    def items(self) -> Iterator[None]:
        """Yield nothing for each value of an array, which is to be read before the next."""
        self._take("[")
        while self.peek() != "]":
            yield None
            self._next("]", "expecting value")
        self._take("]")

    def refuse(self, expected: str) -> FileError:
        """Return the error of a text that is something else here."""
        return self._broken(self._at, expected)

    def _next(self, end: str, expected: str) -> None:
        """Go on to the next member or item, if the end is not here."""
        if self.peek() != end:
            if self.peek() != ",":
                raise self._broken(self._at, f"expecting ',' or '{end}'")
            self._at += 1
            if self.peek() == end:
                raise self._broken(self._at, expected)

    def _take(self, mark: str) -> None:
        if self.peek() != mark:
            raise self._broken(self._at, f"expecting '{mark}'")
        self._at += 1

    def _broken(self, at: int, expected: str) -> FileError:
        """Return the error of a text that is broken at a place: it names the innermost object that is open there."""
        begun = list[int]()
        for token in _BRACES.finditer(self._text, self._at, at):
            if token[0] == "{":
                begun.append(token.start())
            elif token[0] == "}" and begun:
                begun.pop()
        line = self._line_at(at)
        first = self._line_at(begun[-1]) if begun else self._open[-1] if self._open else line
        rest = self._text[at:].partition("\n")[0].strip()[:_SHOWN]
        problem = f"should be whole: {expected[:1].lower()}{expected[1:]} in line {line}"
        shown = f'"{rest}"' if rest else "the end of the line" if self._text[at:].strip() else "the end of the file"
        return FileError([FileFault(first, 1, "object", problem, shown)])

    def _line_at(self, at: int) -> int:
        return self._line + self._text.count("\n", 0, at)

    def _more(self) -> bool:
        """Read further, as much as is held; return whether there was anything more, or the end was not known."""
        if self._ended:
            return False
        self._line += self._text.count("\n", 0, self._at)
        parts = [self._text[self._at :]]
        least, size = len(parts[0]), 0
        try:
            while not self._ended and size <= least:
                piece = next(self._pieces, b"")
                self._ended = not piece
                parts.append(self._decoder.decode(piece, final=self._ended))
                size += len(parts[-1])
        except UnicodeDecodeError as error:
            line = self._line + sum(part.count("\n") for part in parts) + error.object[: error.start].count(b"\n")
            shown = f"byte 0x{error.object[error.start]:02x}"
            raise FileError([FileFault(line, 1, "file", "should be UTF-8 text", shown)]) from None
        self._text, self._at = "".join(parts), 0
        return True


def raw_pieces(path: Path, size: int) -> Iterator[bytes]:
    """Yield a file's bytes, unpacked, so many at a time; refuse damage."""
    lines, damage = 0, None
    with stream_of(path) as source:
        while damage is None:
            content, damage = salvaged(source, size)
            lines += content.count(b"\n")
            if content:
                yield content
            elif damage is None:
                return
    raise FileError([damage.fault(lines)])


def document_rows(path: Path, size: int) -> Iterator[tuple[str, JsonRecord]]:
    """Yield the requests of JSON objects, in arrays or one after another, or the spans in them, and what they are of.

    The first object tells what all hold; requests in objects of another form, and what is no object, are of `OTHER`.

    Parameters
    ----------
    path : the file
    size : bytes that are read at a time

    Raises
    ------
    FileError
        Where the text is broken: with the line where the broken object begins, and what was expected in which line.
    """
    text, form = JsonText(raw_pieces(path, size)), None
    while mark := text.peek():
        if mark not in "[{":
            raise text.refuse("expecting an object, or a list of them")
        for _ in text.items() if mark == "[" else (None,):
            for kind, row in _rows(text, form):
                form = kind if form is None and kind != OTHER else form
                yield kind, row


def _rows(text: JsonText, form: str | None) -> Iterator[tuple[str, JsonRecord]]:
    """Yield the requests of the next object, of whatever it holds if the form of objects is not known yet."""
    if text.peek() != "{":
        text.value()
        yield OTHER, {}
        return
    record = text.whole()
    if isinstance(record, dict):
        yield from _rows_of(record, form)
        return
    plain, has_spans = JsonRecord(), False
    for name in text.members():
        container = _CONTAINERS.get(name)
        if container is not None and text.peek() == "[" and form in {None, container}:
            form, has_spans = container, True
            for _ in text.items():
                yield from ((container, row) for row in (_resource(text) if container == OTLP else _trace(text)))
        else:
            plain[name] = text.value()
    if not has_spans:
        yield from _rows_of(plain, form)


def _rows_of(record: JsonRecord, form: str | None) -> Iterator[tuple[str, JsonRecord]]:
    kind = form_of_object(record) if form is None else form
    lost = lost_of(record, kind)
    yield from ((OTHER, JsonRecord()) for _ in range(lost))
    yield from ((kind, row) for row in rows_of(record, kind) if not lost)


def _trace(text: JsonText) -> Iterator[JsonRecord]:
    trace = text.value()
    yield from trace_rows(trace) if isinstance(trace, dict) else ()


def _resource(text: JsonText) -> Iterator[JsonRecord]:
    """Yield the spans of a resource; what it is stands before them."""
    resource = text.whole() if text.peek() == "{" else text.value()
    if resource is not None:
        yield from resource_rows(resource) if isinstance(resource, dict) else ()
        return
    about: JsonRecord = {}
    for name in text.members():
        if name in _SCOPES and text.peek() == "[":
            for _ in text.items():
                yield from _scope(text, about)
        else:
            value = text.value()
            about = attributes(value) if name == "resource" and isinstance(value, dict) else about


def _scope(text: JsonText, about: JsonRecord) -> Iterator[JsonRecord]:
    scope = text.whole() if text.peek() == "{" else text.value()
    if scope is not None:
        yield from (span_row(span, about) for span in listed(scope, "spans")) if isinstance(scope, dict) else ()
        return
    for name in text.members():
        if name == "spans" and text.peek() == "[":
            for _ in text.items():
                span = text.value()
                if isinstance(span, dict):
                    yield span_row(span, about)
        else:
            text.value()
