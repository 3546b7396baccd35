#!/bin/sh
# ping PID COUNT sends COUNT messages to the agent PID, one at a time, and waits for the answer to each.
call() { printf '{"kind":"command","type":"%s","data":%s,"metadata":{"id":"%s","timestamp":0}}\n' "$1" "$2" "$((n += 1))" && read -r answer; }
read -r hello && printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n'
while [ "$((ball += 1))" -le "$2" ]; do
	call Syscall.SendMsg "{\"receiver_pid\":$1,\"payload\":{\"ball\":$ball}}" || exit 1
	case $answer in *'"status":"DELIVERED"'*) ;; *) printf '%s\n' "$answer" >&2 && exit 1 ;; esac
	call Ipc.Receive '{"max":1,"wait_ms":60000}' || exit 1
	case $answer in *"{\"ball\":$ball}"*) printf 'ball %s came back\n' "$ball" >&2 ;; *) printf '%s\n' "$answer" >&2 && exit 1 ;; esac
done
