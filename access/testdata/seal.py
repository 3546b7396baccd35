"""Seals test values through $SSH_AUTH_SOCK, with nothing of the Go code: one line each, "name value plaintext".

python3 seal.py needs the library `cryptography`; it seals with every ed25519 and rsa key that the agent has.
"""
import base64, hashlib, json, os, socket, struct, sys
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def string(b):
    return struct.pack(">I", len(b)) + b


def cut(b):
    n = struct.unpack(">I", b[:4])[0]
    return b[4 : 4 + n], b[4 + n :]


def ask(payload):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ["SSH_AUTH_SOCK"])
        s.sendall(string(payload))
        f = s.makefile("rb")
        return f.read(struct.unpack(">I", f.read(4))[0])


def url(b):
    return base64.urlsafe_b64encode(b).rstrip(b"=").decode()


def keys():
    answer = ask(b"\x0b")
    count, rest = struct.unpack(">I", answer[1:5])[0], answer[5:]
    for _ in range(count):
        blob, rest = cut(rest)
        _, rest = cut(rest)
        yield blob


def seal(blob, flags, plaintext, aad=None, ts=None, std=False):
    text = b"PromptWareOS::pwenc::v1"
    answer = ask(b"\x0d" + string(blob) + string(text) + struct.pack(">I", flags))
    assert answer[0] == 14
    _, rest = cut(cut(answer[1:])[0])
    raw, rest = cut(rest)
    assert not rest
    key = HKDF(hashes.SHA256(), 32, b"PromptwareOS", b"pwenc:v1").derive(raw)
    nonce, digest = os.urandom(12), hashlib.sha256(blob).digest()
    kid = base64.b64encode(digest).rstrip(b"=").decode() if std else url(digest)
    value = {"v": 1, "kid": "ssh-fp:SHA256:" + kid, "alg": "A256GCM", "nonce": url(nonce),
             "ct": url(AESGCM(key).encrypt(nonce, plaintext.encode(), aad))}
    if aad:
        value["aad"] = url(aad)
    if ts:
        value["ts"] = ts
    return "pwenc:v1:" + url(json.dumps(value, separators=(",", ":")).encode())


for blob in keys():
    kind = cut(blob)[0].decode()
    if kind == "ssh-ed25519":
        print("ed25519", seal(blob, 0, "swordfish"), "swordfish")
        print("ed25519", seal(blob, 0, "swordfish", ts=1735000000), "swordfish")
        print("ed25519", seal(blob, 0, "bound", aad=b"pwenc:v1|test"), "bound")
        print("ed25519", seal(blob, 0, "plus/slash", std=True), "plus/slash")
    if kind == "ssh-rsa":
        for flags, name in ((0, "sha1"), (2, "sha256"), (4, "sha512")):
            print("rsa3072", seal(blob, flags, name), name)
