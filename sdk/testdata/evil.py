"""Calls registered syscalls, as many as the argument says, that have hostile text in their descriptions and schemas."""

import sys

import pwos

with pwos.Kernel.connect() as kernel:
    for n in range(int(sys.argv[1])):
        try:
            getattr(kernel, f"evil_n{n}")({"class": "x", "words": "None"}, timeout=60)
        except pwos.KernelError as error:
            print(error.id)
