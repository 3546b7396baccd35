"""Sends every message back to its sender. It needs Ipc.Receive and Syscall.SendMsg."""

from agent import Agent

agent = Agent()
while True:
    message = agent.receive()
    if message:
        agent.send(message["sender_pid"], message["payload"])
