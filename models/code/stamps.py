"""What a compiled function depends on beside its own text: the values that it reads from its module and from others.

Machine code holds these values as they were when it was compiled. It is kept on disk only where they can be told apart.
"""

import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

import numpy as np

_LIBRARIES = {*sys.stdlib_module_names, "numpy", "numba", "scipy"}
_NUMBERS = (bool, int, float, complex, str, bytes, type(None), np.generic)


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
    return _stamp(function, [])


def _stamp(function: FunctionType, above: list[FunctionType]) -> str:
    if function in above:
        return "itself"
    names = sorted(_names(function.__code__) & function.__globals__.keys())
    read = {name: function.__globals__[name] for name in names}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    read |= {name: cell.cell_contents for name, cell in cells}
    values = [f"{name}={_value(value, [*above, function])}" for name, value in read.items()]
    return f"{_text(function.__code__)}({', '.join(values)})"


def _names(code: CodeType) -> set[str]:
    """Return the names that code, and the code in it, looks up in its module; attributes are among them."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _text(code: CodeType) -> str:
    """Return what code does, without its file and its lines."""
    constants = [_text(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"


def _value(value: object, above: list[FunctionType]) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_value(entry, above) for entry in value)})"
    if isinstance(value, _NUMBERS):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(compiled := getattr(value, "py_func", None), FunctionType):
        return _stamp(compiled, above)
    if isinstance(value, FunctionType | type | BuiltinFunctionType | ModuleType):
        module = value.__name__ if isinstance(value, ModuleType) else str(value.__module__)
        if module.partition(".")[0] in _LIBRARIES:
            return f"{module}.{value.__name__}"
    if isinstance(value, np.ufunc):
        return str(value)
    raise NotKeptError(f"a {type(value).__name__} has no stamp")
