#!/bin/sh
# pong sends every message back to its sender. It needs Ipc.Receive and Syscall.SendMsg.
call() { printf '{"kind":"command","type":"%s","data":%s,"metadata":{"id":"%s","timestamp":0}}\n' "$1" "$2" "$((n += 1))" && read -r answer; }
read -r hello && printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n'
while call Ipc.Receive '{"max":1,"wait_ms":60000}'; do
	case $answer in *'"kind":"error"'*) printf '%s\n' "$answer" >&2 && exit 1 ;; *'"messages":[]'*) continue ;; esac
	from=${answer#*'"sender_pid":'} payload=${answer#*'"payload":'}
	call Syscall.SendMsg "{\"receiver_pid\":${from%%,*},\"payload\":${payload%,'"priority":'*}}"
done
