"""Connects to the socket PATH and makes CALLS calls, each with a TIMEOUT in milliseconds; takes events, then. Prints what came of each."""

import sys
import warnings

from pwos import Kernel, KernelError

path, timeout, calls = sys.argv[1], int(sys.argv[2]) / 1000, int(sys.argv[3])
warnings.showwarning = lambda *_: print("warned")
try:
    kernel = Kernel.connect(path, timeout, check="check" in sys.argv)
except KernelError as error:
    print(error.id, error.code, "with a fix" if error.fix else "without a fix")
    sys.exit()
with kernel:
    for n in range(calls):
        try:
            print(kernel.syscall_ping({"payload": n})["payload"])
        except KernelError as error:
            print(error.id, error.code, "with a fix" if error.fix else "without a fix")
    if "events" in sys.argv:
        try:
            for event in kernel.events():
                print(event.type, event.data)
        except KernelError as error:
            print(error.id, error.code, "with a fix" if error.fix else "without a fix")
