"""Squares the numbers that it is sent. It does not survive the number 7 when it meets it first."""

import os
import sys

from agent import Agent, log

agent = Agent()
while True:
    message = agent.receive()
    if not message:
        continue
    number = message["payload"]
    scar = os.path.join(os.getcwd(), "scar")  # its own directory is the one place where it may write
    if number == 7 and not os.path.exists(scar):
        open(scar, "w").close()
        log("worker %s: 7 was too much" % os.environ["PWOS_PID"])
        sys.exit(1)
    agent.send(message["sender_pid"], [number, number * number])
