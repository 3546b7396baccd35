#!/bin/sh
# Makes the vectors again: sh make.sh, in this folder. Every key it makes is for tests alone.
set -eu
umask 077
cd "$(dirname "$0")/vectors"
rm -f ./*

make_key() { # name, then the arguments of ssh-keygen
	name=$1
	shift
	ssh-keygen -q -N '' -C "pwos test $name" -f "$name" "$@"
}
make_key ed25519 -t ed25519
make_key ecdsa256 -t ecdsa -b 256
make_key ecdsa384 -t ecdsa -b 384
make_key ecdsa521 -t ecdsa -b 521
make_key rsa3072 -t rsa -b 3072
make_key rsa2048 -t rsa -b 2048
make_key dsa -t dsa
make_key ca -t ed25519
ssh-keygen -q -N 'open sesame' -C 'pwos test locked' -f locked -t ed25519
ssh-keygen -q -s ca -I test -n nobody -V always:forever ed25519.pub

# The text of the binding that vectors_test.go has, its host key that of ed25519.pub.
printf 'pwos-auth: v1\nchallenge: %s\nhost_key: %s\npid: 4321\nrole: client\nsocket: /run/user/1000/pwos/kernel.sock\ntime: 1735000000000\nuid: 1000\n' \
	AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= "$(cut -d' ' -f1,2 ed25519.pub)" >text

sign() { # key, namespace, output, options
	key=$1 space=$2 out=$3
	shift 3
	ssh-keygen -q -Y sign -f "$key" -n "$space" "$@" <text >"$out.sig" 2>/dev/null
}
for key in ed25519 ecdsa256 ecdsa384 ecdsa521 rsa3072 rsa2048; do
	sign $key pwos-auth@v1 $key
done
sign ed25519 pwos-auth@v1 ed25519-sha256 -O hashalg=sha256
sign ed25519 file namespace-file
sign ed25519 pwos-host@v1 namespace-host

# A commit signed by git with the same key, whose message is the text.
repository=$(mktemp -d)
git -C "$repository" init -q
GIT_CONFIG_GLOBAL=/dev/null git -C "$repository" -c user.name=pwos -c user.email=pwos@localhost -c gpg.format=ssh \
	-c user.signingkey="$PWD/ed25519" commit -q -S --allow-empty -F "$PWD/text"
git -C "$repository" cat-file commit HEAD | awk '/^gpgsig /{on=1; sub(/^gpgsig /,"")} on&&!/^ |^-----BEGIN/{on=0} on{sub(/^ /,""); print}' >git-commit.sig
rm -rf "$repository"

# Values sealed by another implementation, through the real agent.
eval "$(ssh-agent -s)" >/dev/null
trap 'ssh-agent -k >/dev/null' EXIT
ssh-add -q ed25519 rsa3072
python3 ../seal.py >sealed
