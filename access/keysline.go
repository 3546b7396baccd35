package access

import (
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// parseKeysLine reads a line of authorized_keys that is neither empty nor a comment, without the blanks around it.
func parseKeysLine(line string, zone *time.Location) (*AuthorizedKey, *fault.Fault) {
	if len(line) > maxKeysLine {
		return nil, fault.AuthMalformed.New("the line is over %d bytes long", maxKeysLine)
	}
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return nil, fault.AuthMalformed.New("the line has control characters: type it anew")
	}
	options, rest := "", line
	if !beginsWithType(line) {
		var closed bool
		if options, rest, closed = cutOptions(line); !closed {
			return nil, fault.AuthMalformed.New("a quotation mark is not closed")
		}
	}
	key, comment, err := parseKeyLine(rest)
	if err != nil {
		return nil, err
	}
	k := &AuthorizedKey{Key: key, Comment: comment}
	return k, k.parseOptions(options, zone)
}

// beginsWithType reports whether the first word is a type of keys and not a list of options: no option begins so.
func beginsWithType(line string) bool {
	word, _, _ := cutAny(line, " \t")
	for _, prefix := range []string{"ssh-", "ecdsa-", "sk-", "rsa-", "webauthn-"} {
		if strings.HasPrefix(word, prefix) {
			return !strings.ContainsAny(word, `",=`)
		}
	}
	return false
}

// cutOptions cuts the options off a line: up to the first blank outside of quotation marks. Within them \" is one, as
// sshd has it, and every other backslash is itself.
func cutOptions(line string) (options, rest string, closed bool) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '"':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
			return line[:i], strings.TrimLeft(line[i:], " \t"), true
		}
	}
	return line, "", !quoted
}

// keysIn returns the keys that any word of a line holds: those that the line would have been about if it had been well formed.
func keysIn(line string) []PublicKey {
	const most = 8 // a line has one
	var keys []PublicKey
	for word := range strings.FieldsSeq(line) {
		typ, ok := typeOfBase64(word)
		if !ok {
			continue
		}
		if key, _, err := parseKeyLine(typ + " " + word); err == nil && len(keys) < most {
			keys = append(keys, key)
		}
	}
	return keys
}

// typeOfBase64 guesses the type of a key from how its base64 begins.
func typeOfBase64(word string) (string, bool) {
	for prefix, typ := range map[string]string{
		"AAAAC3NzaC1lZDI1NTE5":                 "ssh-ed25519",
		"AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2gu": "sk-ssh-ed25519@openssh.com",
		"AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY":      "ecdsa-sha2-nistp256",
		"AAAAE2VjZHNhLXNoYTItbmlzdHAzODQ":      "ecdsa-sha2-nistp384",
		"AAAAB3NzaC1yc2":                       "ssh-rsa",
	} {
		if strings.HasPrefix(word, prefix) {
			return typ, true
		}
	}
	return "", false
}
