package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// Digest is the SHA-256 of a file, as a pin has it.
func Digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read executable: %w", err)
	}
	defer func() { _ = f.Close() }() // it was read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read executable: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
