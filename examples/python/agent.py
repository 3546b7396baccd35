"""The agent's end of the channel: standard input and output, a line of JSON a message. Standard library only."""

import itertools
import json
import sys
import time


class Refused(Exception):
    """The kernel answered with an error: its code, and a message that says what to do."""


class Agent:
    def __init__(self):
        self.ids = itertools.count(1)
        sys.stdin.readline()  # the kernel's Syscall.Authenticate: who we are it knows already
        self.write({"kind": "reply", "type": "Syscall.Authenticate", "data": None})

    def write(self, message):
        print(json.dumps(message, separators=(",", ":")), flush=True)

    def call(self, type_, kind="command", **data):
        """Sends one message and returns the data of its answer."""
        metadata = {"id": str(next(self.ids)), "timestamp": int(time.time() * 1000)}
        self.write({"kind": kind, "type": type_, "data": data, "metadata": metadata})
        line = sys.stdin.readline()
        if not line:
            sys.exit("the kernel has closed the channel")
        answer = json.loads(line)
        if answer["kind"] == "error":
            raise Refused("%(code)d: %(message)s" % answer["data"])
        return answer["data"]

    def receive(self, wait_ms=60000):
        """Waits for a message; None where none has come."""
        messages = self.call("Ipc.Receive", max=1, wait_ms=wait_ms)["messages"]
        return messages[0] if messages else None

    def send(self, pid, payload):
        status = self.call("Syscall.SendMsg", receiver_pid=pid, payload=payload)["status"]
        if status != "DELIVERED":
            raise Refused(status)


def log(text):
    """Standard error is the agent's log: `pwos logs` shows it."""
    print(text, file=sys.stderr, flush=True)
