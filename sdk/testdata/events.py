"""What the kernel pushes, and a syscall of our own, whose name is the argument."""

import json
import sys
import threading

from pwos import Kernel, KernelError

name = sys.argv[1]


def serve(data, pid):
    if data == "raise":
        raise ValueError("no such thing: \u00fc " + "x" * 1000)
    if data == "long":
        return "x" * 20000
    if data == "no json":
        return {1}
    if data == "call":  # a handler may call
        return provider.syscall_ping({"payload": "inside"})["payload"]
    if data == "number":
        return 1
    return [data, pid]


with Kernel.connect() as provider, Kernel.connect() as kernel:
    pid = kernel.syscall_spawn({"child_agent_id": "bob", "capabilities": {"allowed_syscalls": ["Ipc.*"]}})["child_pid"]
    provider.ipc_subscribe({"pid": pid})
    done = threading.Event()

    def deliver(event):
        print(event.type, event.data["payload"])
        if event.data["payload"] == "last":
            done.set()

    provider.on("Ipc.MessageDelivered", deliver)
    provider.provide(name, serve, input={"type": "string"}, output={"type": ["array", "string"]}, description="Says it again.")
    loop = threading.Thread(target=provider.run)
    loop.start()
    for payload in ["first", "\u00fc", "last"]:
        kernel.syscall_send_msg({"receiver_pid": pid, "payload": payload})
    done.wait()
    for data in ["hello", "raise", "long", "no json", "number", 7, "call"]:
        try:
            print(json.dumps(kernel.call("command", name, data), separators=(",", ":")))
        except KernelError as error:
            print(error.id)
    try:
        provider.call("command", name, "x")
    except KernelError as error:
        print(error.id)
    print(kernel.syscall_describe({"name": name})["description"])
    provider.close()
    loop.join()
    print("the loop has ended")
    try:
        kernel.call("command", name, "x")
    except KernelError as error:
        print(error.id)
