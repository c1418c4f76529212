"""Of several processes that test, one compiles the functions of a file, while the others wait to read them."""

import fcntl
import os

from numba.core.dispatcher import Dispatcher


def take_turns():
    """Have this process wait for others that do so too; a function that it compiles already it goes on with."""
    compiled, held = Dispatcher.compile, set()

    def waited(self, sig):
        name = self.py_func.__code__.co_filename
        if name in held or not os.path.isfile(name):
            return compiled(self, sig)
        with open(name, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            held.add(name)
            try:
                return compiled(self, sig)
            finally:
                held.remove(name)

    Dispatcher.compile = waited
