"""Spawns three workers, hands out ten numbers, and collects the squares. A worker that crashes is started again by the
kernel; what it had taken out of its mailbox is gone, so a number without an answer is handed out again.

It needs Syscall.Spawn, Syscall.SendMsg, Syscall.Terminate and Ipc.Receive."""

import os
import sys

from agent import Agent, log

agent = Agent()
here = os.path.dirname(os.path.abspath(__file__))
workers = [
    agent.call(
        "Syscall.Spawn",
        child_agent_id="worker-%d" % n,
        command=[sys.executable, os.path.join(here, "worker.py")],
        restart="on-failure",
        capabilities={"allowed_syscalls": ["Ipc.Receive", "Syscall.SendMsg"]},
    )["child_pid"]
    for n in range(3)
]
log("workers: %s" % workers)

squares = {}
while len(squares) < 10:
    missing = [n for n in range(1, 11) if n not in squares]
    for n in missing:
        agent.send(workers[n % 3], n)
    for _ in missing:
        message = agent.receive(wait_ms=3000)
        if not message:
            log("no answer to %s: once more" % [n for n in missing if n not in squares])
            break
        number, square = message["payload"]
        squares[number] = square
log("squares: %s" % [squares[n] for n in sorted(squares)])
for pid in workers:
    agent.call("Syscall.Terminate", target_pid=pid)
