"""Connects to the socket PATH with a TIMEOUT in milliseconds and makes CALLS calls; further words change what is done. Prints the outcome of each."""

import sys
import warnings

from pwos import Kernel, KernelError

path, timeout, calls = sys.argv[1], float(sys.argv[2]) / 1000, int(sys.argv[3])
warnings.showwarning = lambda *_: print("warned")
try:
    kernel = Kernel.connect(path, timeout, check="check" in sys.argv)
except KernelError as error:
    print(error.id, error.code, "with a fix" if error.fix else "without a fix")
    sys.exit()
with kernel:
    for n in range(calls):
        try:
            data = {"payload": n, "wait_ms": 60000 if "wait" in sys.argv else 0}
            own = 0.05 if n == 0 and "hurry" in sys.argv else None
            print(kernel.call("query", "Syscall.Ping", data, own)["payload"])
        except KernelError as error:
            print(error.id, error.code, "with a fix" if error.fix else "without a fix")
    if "events" in sys.argv:
        try:
            for event in kernel.events():
                print(event.type, event.data)
        except KernelError as error:
            print(error.id, error.code, "with a fix" if error.fix else "without a fix")
