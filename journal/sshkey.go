package journal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const keyType = "ssh-ed25519"

var errKey = errors.New("not an " + keyType + " public key line")

// parseKey reads an authorized-key line, comment allowed, and returns the key with the line's canonical form: type and
// blob, nothing else. A host key is always ssh-ed25519 (PROTOCOL 4).
func parseKey(line string) (ed25519.PublicKey, string, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 || fields[0] != keyType {
		return nil, "", fmt.Errorf("parse key: %w", errKey)
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(fields[1])
	if err != nil {
		return nil, "", fmt.Errorf("parse key: %w", err)
	}
	// RFC 8709 section 4: two length-prefixed strings, the type and the 32 bytes of the key.
	head := binary.BigEndian.AppendUint32(nil, uint32(len(keyType)))
	head = append(head, keyType...)
	head = binary.BigEndian.AppendUint32(head, ed25519.PublicKeySize)
	key, ok := bytes.CutPrefix(blob, head)
	if !ok || len(key) != ed25519.PublicKeySize {
		return nil, "", fmt.Errorf("parse key: %w", errKey)
	}
	return key, keyType + " " + base64.StdEncoding.EncodeToString(blob), nil
}
