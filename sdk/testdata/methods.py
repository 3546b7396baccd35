"""Calls the method of each syscall, named in the arguments as METHOD=TYPE, with a member that no syscall has."""

import sys

from pwos import Kernel, KernelError

with Kernel.connect() as kernel:
    for argument in sys.argv[1:]:
        name, type = argument.split("=")
        method = getattr(kernel, name)
        assert method.__doc__, name
        try:
            method({"\u2603": 1})
        except KernelError as error:
            assert error.id == "wire.invalid_input", f"{type}: {error}"
            print(type)
