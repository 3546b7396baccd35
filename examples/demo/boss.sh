#!/bin/sh
# boss asks the agent PID a question, waits for the answer, and then tries something that it may not.
call() { printf '{"kind":"command","type":"%s","data":%s,"metadata":{"id":"boss-%s","timestamp":0,"correlation":"question-1"}}\n' "$1" "$2" "$$-$((n += 1))" && read -r answer; }
read -r hello && printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n'
echo 'boss: clerk, what is 6 times 7?' >&2
call Syscall.SendMsg "{\"receiver_pid\":$1,\"payload\":{\"question\":\"6 times 7\"}}"
call Ipc.Receive '{"max":1,"wait_ms":9000}'
case $answer in *'{"answer":42}'*) ;; *) exit 1 ;; esac
call Ipc.Receive '{"wait_ms":100}' # a pause: nothing else comes
echo 'boss: 42, thank you. I write that down for everybody' >&2
call Memory.Set '{"key":"answers/1","value":42}'
case $answer in *'"code":403'*) text=${answer#*'"message":"'} && text=${text%'"},"metadata":'*} ;; *) exit 1 ;; esac
while case $text in *'\"'*) ;; *) break ;; esac; do text=${text%%'\"'*}\"${text#*'\"'}; done # JSON writes " as \"
printf 'boss: it says: %s\n' "$text" >&2
