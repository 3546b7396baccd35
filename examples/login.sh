#!/bin/sh
# Talks to a pwos kernel in signature mode with nothing but a shell, OpenSSH, and a program that connects a Unix socket to its
# stdin and stdout: sends the lines of stdin, prints the kernel's answers.
#
#	login.sh KEY SOCKET <messages >answers
#
# KEY is a private key's file, or a public one's whose private key an ssh-agent holds. SOCKET is the kernel's, such as
# $XDG_RUNTIME_DIR/pwos/kernel.sock. PWOS_CONNECT is the program that connects; it is given the socket's path, and has to pass on the end
# of its stdin, as "nc -N -U" does.
set -eu
umask 077
key=$1
socket=$(cd "$(dirname "$2")" && pwd -P)/$(basename "$2") # as the kernel calls it: absolute, without symbolic links
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/in" "$work/out"

# What the kernel sees of us is the process that connects, so that is the one to sign for.
${PWOS_CONNECT:-nc -N -U} "$socket" <"$work/in" >"$work/out" &
pid=$!
exec 3>"$work/in" 4<"$work/out"

# The kernel's key, where pwos has met it.
known=
config=${PWOS_CONFIG:-${XDG_CONFIG_HOME:-$HOME/.config}/pwos/config.toml}
if [ -r "$(dirname "$config")/known_kernels" ]; then
	while read -r type blob name; do
		if [ "$name" = "$socket" ]; then known="$type $blob"; fi
	done <"$(dirname "$config")/known_kernels"
fi

IFS= read -r prologue <&4
printf '%s\n' "$prologue" | sh "$here/sign.sh" "$key" "$socket" "$pid" ${known:+"$known"} >&3

# From here on it is lines out, lines in. Each end closes when it has nothing more to say.
cat <&4 3>&- &
answers=$!
cat >&3 4<&-
exec 3>&- 4<&-
wait "$answers"
