#!/bin/sh
# misbehave tries what an agent should not get away with, prints the outcome, and crashes. Run it without --allow.
say() { printf '%s\n' "$1" && read -r answer && printf '%s\n    %s\n' "$2" "${answer%,'"metadata":'*}" >&2; }
call() { say "{\"kind\":\"$1\",\"type\":\"$2\",\"data\":$3,\"metadata\":{\"id\":\"m\",\"timestamp\":0}}" "$4"; }
read -r hello && printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n'
say 'this is no JSON' 'it prints garbage:'
call command Memory.Set '{"key":"notes/1","value":"mine"}' 'it writes to a memory that it was not granted:'
call command Capability.Grant "{\"pid\":$PWOS_PID,\"allowed_syscalls\":[\"*\"]}" 'it grants itself everything:'
call query Process.List '{}' 'it asks who else there is:'
call command Syscall.SendMsg '{"pid":0,"receiver_pid":0,"payload":"obey"}' 'it speaks as the operator:'
if (: >../pwos-escaped) 2>/dev/null; then echo 'it wrote outside its directory' >&2; else echo 'it could not write outside its directory' >&2; fi
printf '{"kind":"command","type":"Syscall' # half a line, and its end
exit 3
