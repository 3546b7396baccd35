package host

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestIsForGit: what logs in, changes the keys, or signs for another purpose than git's is not passed on.
func TestIsForGit(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s }
	sign := func(data string) string { return "\x0d" + text("key") + text(data) + "\x00\x00\x00\x00" }
	blob := func(namespace string) string {
		return "SSHSIG" + text(namespace) + text("") + text("sha512") + text("hash")
	}
	for request, want := range map[string]bool{
		"\x0b":                                  true,
		sign(blob("git")):                       true,
		sign(blob("file")):                      false,
		sign(blob("")):                          false,
		sign(blob("git.")):                      false,
		sign("SSHSIG"):                          false,
		sign(text("session") + "\x32" + "user"): false, // a login
		sign(text("SSHSIG") + text("git")):      false,
		sign(""):                                false,
		sign(blob("git")) + "x":                 false,
		sign(blob("git"))[:40]:                  false,
		"\x0d":                                  false,
		"\x0d\xff\xff\xff\xff":                  false,
		"\x0d" + text("key") + "\xff\xff\xff\xffS": false,
		"\x0b\x00":               false,
		"\x11" + text("ssh-rsa"): false, // add a key
		"\x13":                   false, // remove all
		"\x1b" + text("session-bind@openssh.com"): false,
		"": false,
	} {
		if got := isForGit([]byte(request)); got != want {
			t.Errorf("%q: %v", request, got)
		}
	}
	if _, err := readMessage(bytes.NewReader([]byte("\xff\xff\xff\xff"))); err == nil {
		t.Error("a message of 4 GiB")
	}
}
