"""Compiled functions: Numba's `njit`, whose cache on disk is left unread where its index does not fit the code.

An index names the classes of the arguments. One that was written when a class still had another name cannot be
unpickled, and Numba would end in an AttributeError before it asks whether the source is as old as the index.

Machine code also holds what a function read from its module and from others when it was compiled, functions that it
calls among them; Numba looks at the function's own file alone. What is kept counts while it would read the same. What
other people wrote is kept on disk only where that can be told, by `stamp`.

Numba makes machine code of every function, and optimises again all that it calls. A function that is not kept on disk
is a part of those that call it: its code is handed to them as it is, and optimised once, with them.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pickle import UnpicklingError
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Literal, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R")
_UNREADABLE = (AttributeError, EOFError, ImportError, IndexError, UnpicklingError)
"""What unpickling raises, says the manual of `pickle`."""


_LIBRARIES = {*sys.stdlib_module_names, "numpy", "numba", "scipy"}
_NUMBERS = (bool, int, float, complex, str, bytes, type(None), np.generic)


class NoNumberError(ValueError):
    """A function has no way to its end, so it returns no number."""


class _Underway(event.Listener):
    """Counts functions of which machine code is being made, those that they call among them."""

    def __init__(self) -> None:
        self.functions = 0

    def on_start(self, _event: object) -> None:
        self.functions += 1

    def on_end(self, _event: object) -> None:
        self.functions -= 1


_UNDERWAY = _Underway()
event.register("numba:compile", _UNDERWAY)


def compiling() -> bool:
    """Return whether machine code is being made, by whatever thread.

    Examples
    --------
    >>> compiling()
    False
    """
    return _UNDERWAY.functions > 0


class _Index(IndexDataCacheFile):
    """The index of a cache: empty if it cannot be unpickled."""

    def _load_index(self) -> object:
        try:
            return super()._load_index()
        except _UNREADABLE:
            return {}


class _Cache(FunctionCache):
    """A function's cache with such an index; what was kept while a function read something else counts for nothing."""

    def __init__(self, function: FunctionType, *stamp: str) -> None:
        super().__init__(function)
        self._function, self._stamp = function, stamp
        self._open = False

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the machine code for arguments of these types; None: there is none."""
        if not self._open:  # when the first is asked for, all that the function reads is there
            self._cache_file = _Index(
                cache_path=self._cache_path,
                filename_base=self._impl.filename_base,
                source_stamp=(
                    *self._impl.locator.get_source_stamp(),
                    *(self._stamp or (_Stamps().of(self._function),)),
                ),
            )
            self._open = True
        return super().load_overload(sig, target_context)

    def _index_key(self, sig: object, codegen: object) -> object:
        """Return what machine code is kept under: Numba's key, and the order of the fields of all named tuples."""
        return super()._index_key(sig, codegen), *map(
            _fields, cast("tuple[types.Type, ...]", getattr(sig, "args", sig))
        )


def _fields(kind: types.Type) -> object:
    """Return the names of a named tuple's fields, and those of the tuples in it; of anything else nothing."""
    if not isinstance(kind, types.BaseTuple):
        return ()
    return tuple(getattr(kind, "fields", ())), *map(_fields, kind)


class _NoCodegen:
    """Stands for what makes machine code: parts have none, so no environment of theirs has an address there."""

    @staticmethod
    def set_env(_name: str, _environment: object) -> None:
        """Leave it to the function that they are parts of."""


class _Part(JITCodeLibrary):
    """The code of a part with that of its own parts, neither optimised nor turned into machine code."""

    codegen = _NoCodegen

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _PartCompiler(Compiler):
    """Numba's compiler, for parts."""

    def define_pipelines(self) -> list[Any]:
        self.state.library = _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return list(super().define_pipelines())


def njit(
    *,
    cache: bool = True,
    nogil: bool = False,
    error_model: Literal["python", "numpy"] = "python",
    inline: Literal["never", "always"] = "never",
    borrows: bool = False,
) -> Callable[[_F], _F]:
    """Return a decorator that compiles a function, with options of `numba.njit`.

    Parameters
    ----------
    cache : whether what is compiled is kept on disk for the next process; what is not becomes a part of each compiled
        function that calls it, and has machine code of its own only where Python calls it
    borrows : whether it counts no references to arrays, which costs more than small loops over them: it makes none, its
        caller holds those that it is given, and it returns arrays only to functions that borrow too

    Examples
    --------
    >>> @njit(cache=False)
    ... def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> twice(3.0)
    6.0
    """

    def compiled(function: _F) -> _F:
        # Counts of references and ways in from C and Python, which the types of numba.njit leave out.
        options: dict[str, Any] = {"_nrt": not borrows, "no_cfunc_wrapper": True, "error_model": error_model}
        dispatcher: Any = numba.njit(nogil=nogil, inline=inline, **options)(function)
        if dispatcher is function:  # NUMBA_DISABLE_JIT is set
            return function
        if cache:
            dispatcher._cache = _Cache(cast(FunctionType, function))
        else:
            options["no_cpython_wrapper"] = True
            part: Any = numba.njit(pipeline_class=_PartCompiler, inline=inline, **options)(function)
            dispatcher.get_call_template, dispatcher.get_overload = part.get_call_template, part.get_overload
        return cast(_F, dispatcher)

    return compiled


def of_numbers(function: Callable[..., float], parameters: int) -> Callable[..., float]:
    """Return a function of so many numbers that gives a number, compiled now and kept on disk where that can be.

    What is kept counts as long as the function reads the same values, from whatever module: see `stamp`.

    Raises
    ------
    NoNumberError
        If it returns on no way through it.

    Examples
    --------
    >>> def mean(a, b):
    ...     return (a + b) / 2
    >>> of_numbers(mean, 2)(1, 2)
    1.5
    """
    dispatcher: Any = numba.njit(function)
    if not hasattr(dispatcher, "compile"):  # NUMBA_DISABLE_JIT is set
        return function
    with suppress(RuntimeError, NotKeptError):  # no file can be beside its own, or it reads what has no stamp
        read = cast(FunctionType, function)
        dispatcher._cache = _Cache(read, function.__module__, stamp(read))
    dispatcher.compile(types.float64(*[types.float64] * parameters))
    [signature] = dispatcher.nopython_signatures
    if signature.return_type != types.float64:  # where nothing is returned, Numba asks for no type
        raise NoNumberError("should return a number, but does nothing else than raise an error, or never ends")
    dispatcher.disable_compile()
    return cast(Callable[..., float], dispatcher)


def with_functions(kernel: Callable[..., _R], *arguments: object) -> Callable[..., _R]:
    """Return a kernel of `njit` for arguments of these types, what `of_numbers` compiled among them.

    It takes those as first-class functions: it is the same machine code for all with as many parameters.

    Examples
    --------
    >>> @njit(cache=False)
    ... def at_one(function):
    ...     return function(1.0)
    >>> negative = of_numbers(lambda x: -x, 1)
    >>> with_functions(at_one, negative)(negative)
    -1.0
    """
    dispatcher: Any = kernel
    if not hasattr(dispatcher, "compile"):
        return kernel
    return cast(Callable[..., _R], dispatcher.compile(tuple(map(_type, arguments))))


def _type(argument: object) -> types.Type:
    """Return what Numba calls an argument's type; of a function of numbers that of all such, in named tuples too."""
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return types.NamedTuple(tuple(map(_type, argument)), type(argument))
    own: types.Type | None = getattr(argument, "get_function_type", lambda: None)()
    return own or numba.typeof(argument)


class NotKeptError(ValueError):
    """A function reads what has no stamp, such as a module of somebody's own: it is compiled in every process."""


def stamp(function: FunctionType) -> str:
    """Return a text that differs where a function reads other values than before; compiled functions that it calls too.

    Raises
    ------
    NotKeptError
        If it reads anything but numbers, texts, arrays, compiled functions and what is of a library.

    Examples
    --------
    >>> WIDE = 2.0
    >>> def area(x):
    ...     return WIDE * x
    >>> area.__globals__["WIDE"] = 2.0
    >>> before = stamp(area)
    >>> area.__globals__["WIDE"] = 3.0
    >>> before == stamp(area)
    False
    """
    return _Stamps(strict=True).of(function)


class _Stamps:
    """Texts that differ where functions read other values than before, each function's made once.

    Unless they are strict, what has no stamp is told by its type alone: what kernels of ours read beside numbers,
    compiled functions and modules of these are classes of named tuples.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.known: dict[FunctionType, str] = {}

    def of(self, function: FunctionType) -> str:
        """Return the text of a function."""
        if function not in self.known:
            self.known[function] = "itself"
            code = function.__code__
            cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
            read = self._in(function.__globals__, code)
            read |= {name: self._value(cell.cell_contents, code) for name, cell in cells}
            read["defaults"] = self._value(function.__defaults__ or (), code)
            values = ", ".join(f"{name}={value}" for name, value in read.items())
            self.known[function] = sha256(f"{_text(code)}({values})".encode()).hexdigest()
        return self.known[function]

    def _in(self, module: Mapping[str, object], code: CodeType) -> dict[str, str]:
        return {name: self._value(module[name], code) for name in sorted(_names(code) & module.keys())}

    def _value(self, value: object, code: CodeType) -> str:
        if isinstance(value, tuple):
            return f"({', '.join(self._value(entry, code) for entry in value)})"
        if isinstance(value, _NUMBERS):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
        if isinstance(compiled := getattr(value, "py_func", None), FunctionType):
            return f"{self.of(compiled)} {getattr(value, 'targetoptions', '')}"
        return _of_library(value) or self._other(value, code)

    def _other(self, value: object, code: CodeType) -> str:
        if self.strict:
            raise NotKeptError(f"a {type(value).__name__} has no stamp")
        if isinstance(value, ModuleType):
            return str(self._in(vars(value), code))
        return f"{value.__qualname__} {getattr(value, '_fields', '')}" if isinstance(value, type) else str(type(value))


def _of_library(value: object) -> str:
    """Return the name of what is a library's; empty: it is none's."""
    if isinstance(value, FunctionType | type | BuiltinFunctionType | ModuleType):
        module = value.__name__ if isinstance(value, ModuleType) else str(value.__module__)
        return f"{module}.{value.__name__}" if module.partition(".")[0] in _LIBRARIES else ""
    return str(value) if isinstance(value, np.ufunc) else ""


def _names(code: CodeType) -> set[str]:
    """Return the names that code, and the code in it, looks up in its module; attributes are among them."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _text(code: CodeType) -> str:
    """Return what code does, without its file and its lines."""
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {[*map(_constant, code.co_consts)]}"


def _constant(constant: object) -> str:
    if isinstance(constant, frozenset):  # in another order in every process
        return f"frozenset {sorted(map(repr, constant))}"
    return _text(constant) if isinstance(constant, CodeType) else repr(constant)
