#!/bin/sh
# Answers the prologue of a pwos daemon with nothing but a shell and OpenSSH.
#
#	sign.sh KEY SOCKET PID [KNOWN_HOST_KEY] <prologue >reply
#
# The prologue is the daemon's first line, the reply the line to send back. KEY is a private key's file, or a public one's
# whose private key an ssh-agent holds. SOCKET is the socket's path, absolute and without symbolic links. PID is that of the process that
# connected to it, such as socat or nc: not that of this shell. KNOWN_HOST_KEY is the kernel's key as it was seen before,
# "ssh-ed25519 AAAA…"; without it this trusts the one that is offered, and says so.
set -eu
umask 077
key=$1 socket=$2 pid=$3 known=${4-}
uid=$(id -u)
IFS= read -r prologue

member() { # the value of a string or a number of that name; the prologue has each once, without escapes
	printf '%s' "$prologue" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"
}
[ "$(member scheme)" = signature ] || { echo "sign.sh: the daemon asks for no signature" >&2; exit 1; }
challenge=$(member challenge) host_key=$(member host_key) proof=$(member host_signature) time=$(member timestamp)
case $time in '' | *[!0-9]*) echo "sign.sh: the prologue has no time, nothing was signed" >&2; exit 1 ;; esac
if [ -z "$known" ]; then
	echo "sign.sh: the kernel's key is $host_key: pass it as the fourth argument from now on" >&2
elif [ "$known" != "$host_key" ]; then
	echo "sign.sh: the kernel has another key than before, nothing was signed" >&2
	exit 1
fi

now=$(date +%s)
age=$((now - time / 1000))
[ "$age" -ge -30 ] && [ "$age" -le 30 ] || { echo "sign.sh: the prologue is from another time, nothing was signed" >&2; exit 1; }

text() { # the role of who signs it
	printf 'pwos-auth: v1\nchallenge: %s\nhost_key: %s\npid: %s\nrole: %s\nsocket: %s\ntime: %s\nuid: %s\n' \
		"$challenge" "$host_key" "$pid" "$1" "$socket" "$time" "$uid"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The kernel first: its proof has to be of this very connection.
printf 'kernel %s\n' "$host_key" >"$work/kernel"
{
	echo '-----BEGIN SSH SIGNATURE-----'
	printf '%s\n' "$proof" | fold -w 70
	echo '-----END SSH SIGNATURE-----'
} >"$work/proof"
text host | ssh-keygen -q -Y verify -f "$work/kernel" -I kernel -n pwos-host@v1 -s "$work/proof" >/dev/null 2>&1 ||
	{ echo "sign.sh: the kernel's proof does not fit this connection, nothing was signed" >&2; exit 1; }

# Then we.
text client >"$work/text"
ssh-keygen -q -Y sign -f "$key" -n pwos-auth@v1 "$work/text" 2>"$work/why" || { cat "$work/why" >&2; exit 1; }
case $key in *.pub) public=$key ;; *) public=$key.pub ;; esac
printf '{"kind":"reply","type":"Syscall.Authenticate","data":{"public_key":"%s","signature":"%s"},"metadata":{"id":"sign.sh","timestamp":%s}}\n' \
	"$(cut -d' ' -f1,2 "$public")" "$(awk '{printf "%s\\n", $0}' "$work/text.sig")" "$time"
