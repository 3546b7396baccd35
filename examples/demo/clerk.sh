#!/bin/sh
# clerk answers questions. On its first day it crashes with one in its hands.
call() { printf '{"kind":"command","type":"%s","data":%s,"metadata":{"id":"clerk-%s","timestamp":0%s}}\n' "$1" "$2" "$$-$((n += 1))" "$why" && read -r answer; }
read -r hello && printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n'
while call Ipc.Receive '{"max":1,"wait_ms":60000,"ack":true}'; do
	case $answer in *'"msg_id":'*) ;; *'"kind":"error"'*) exit 1 ;; *) continue ;; esac
	if [ ! -e crashed-once ]; then : >crashed-once && echo 'clerk: help, a question! (crashes)' >&2 && exit 1; fi
	id=${answer#*'"msg_id":'} from=${answer#*'"sender_pid":'} cause=${answer##*'"messages":'} && cause=${cause#*'"causation":"'}
	why=",\"correlation\":\"question-1\",\"causation\":\"${cause%%'"'*}\""
	echo 'clerk: 42, of course' >&2
	call Syscall.SendMsg "{\"receiver_pid\":${from%%,*},\"payload\":{\"answer\":42}}"
	call Ipc.Ack "{\"msg_ids\":[${id%%,*}]}" && why=
done
