"""Calls a registered syscall that has hostile text in its description and its schemas, and finds the text where it belongs."""

import pwos

with pwos.Kernel.connect() as kernel:
    for n in range(21):
        try:
            getattr(kernel, f"evil_n{n}")({"class": "x", "words": "None"}, timeout=60)
        except pwos.KernelError as error:
            print(error.id)
