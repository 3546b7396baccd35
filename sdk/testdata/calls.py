"""Calls of memory, mail and processes: what comes back, and what goes wrong."""

import json
import threading

from pwos import Kernel, KernelError


def show(value):
    print(json.dumps(value, separators=(",", ":")))


def refused(call):
    try:
        call()
    except KernelError as error:
        print(error.id, error.code, bool(error.message), error.fix)
    else:
        print("not refused")


with Kernel.connect() as kernel:
    # What is written comes back.
    for value in [None, True, 2**53 - 1, 1.5, "", {"a": [1, {}]}, 'quotes " \\ \n \0 \u2028 \u202e \U0001f600', {"__proto__": 1, "constructor": 2}]:
        kernel.memory_set({"key": "notes/\u00fc \u05d0", "value": value})
        show(kernel.memory_get({"key": "notes/\u00fc \u05d0"}) == value)
    show(kernel.memory_list({"prefix": "notes/"})["keys"] == ["/notes/\u00fc \u05d0"])

    # An answer that does not fit a line is read from its file; what does not fit one is refused, and the next call is made.
    long = "\u00e9" * 8090
    kernel.memory_set({"key": "long", "value": long})
    show(kernel.memory_get({"key": "long"}) == long)
    for payload in [long, {"in": long, "pieces": [1, "\r\n"]}]:
        show(kernel.syscall_ping({"payload": payload}) == {"payload": payload})
    refused(lambda: kernel.memory_set({"key": "long", "value": "x" * 20000}))
    show(kernel.syscall_ping({"payload": 7})["payload"])

    # Errors.
    refused(lambda: kernel.memory_get({"key": "nothing"}))
    refused(lambda: kernel.memory_set({"key": "../up", "value": 1}))
    refused(lambda: kernel.call("command", "Moon.Rise"))
    refused(lambda: kernel.call("command", "Memory.Get", {"key": "a"}))

    # Processes and mail.
    pid = kernel.syscall_spawn({"child_agent_id": "bob", "capabilities": {"allowed_syscalls": ["Ipc.*"]}})["child_pid"]
    show([p["agent_id"] for p in kernel.process_list()["processes"]])
    sent = kernel.syscall_send_msg({"receiver_pid": pid, "payload": {"to": "bob"}}, idempotencyKey="k", correlation="c")
    again = kernel.syscall_send_msg({"receiver_pid": pid, "payload": {"to": "bob"}}, idempotencyKey="k", correlation="c")
    show(sent["msg_id"] == again["msg_id"])
    refused(lambda: kernel.syscall_send_msg({"receiver_pid": pid, "payload": "other"}, idempotencyKey="k"))
    messages = kernel.ipc_receive({"pid": pid, "wait_ms": 60000}, timeout=60)["messages"]
    show([[m["payload"], m["correlation"]] for m in messages])

    # Many at once.
    results = [None] * 200
    started = [kernel.submit("query", "Syscall.Ping", {"payload": n}) for n in range(200)]
    show(all(answer.result(60)["payload"] == n for n, answer in enumerate(started)))

    def ask(n):
        results[n] = kernel.syscall_ping({"payload": n})["payload"]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    show(results[:20] == list(range(20)))

    # What JSON cannot say is never sent, and no metadata is made up.
    for wrong in [{"payload": float("nan")}, {"payload": "\ud800"}, {"payload": {1, 2}}]:
        try:
            kernel.syscall_ping(wrong)
        except (ValueError, TypeError):
            show(True)
    try:
        kernel.syscall_ping({"payload": 1}, idempotencykey="x")
    except TypeError:
        show(True)

refused(lambda: kernel.syscall_ping({"payload": 1}))
kernel.close()
