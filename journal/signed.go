package journal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// A seal is the signature in a line: of a checkpoint, an anchor, a redaction. Each has a text of its own, whose first line
// names its purpose.
type seal struct {
	Key string // authorized-key line, without comment
	Sig []byte // Ed25519 over the text
}

var errSignature = errors.New("signature does not match")

// verify checks the signature against the key that the line names. It does not decide whether that key is trusted.
func (s *seal) verify(text []byte) error {
	key, _, err := parseKey(s.Key)
	if err != nil {
		return err
	}
	if !ed25519.Verify(key, text, s.Sig) {
		return errSignature
	}
	return nil
}

// sealed signs a text, and verifies the result: an invalid signature would look like tampering as long as the journal
// exists. key is the canonical line of the signer's key; "" means its present one.
func sealed(s Signer, key string, text []byte) (out seal, err error) {
	if out.Key = key; key == "" {
		if _, out.Key, err = parseKey(s.Public()); err != nil {
			return out, err
		}
	}
	if out.Sig, err = s.Sign(text); err != nil {
		return out, err
	}
	return out, out.verify(text)
}

// appendSeal appends the last two members of a line.
func appendSeal(dst []byte, s *seal) []byte {
	dst = append(dst, `,"key":`...)
	dst = appendString(dst, s.Key)
	dst = append(dst, `,"sig":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, s.Sig)
	return append(dst, `"}`...)
}

// seal reads what appendSeal writes.
func (c *cursor) seal(s *seal) {
	c.word(`,"key":`)
	s.Key = c.text("")
	c.word(`,"sig":`)
	sig := c.text("")
	c.word(`}`)
	var err error
	s.Sig, err = base64.StdEncoding.DecodeString(sig)
	c.bad = c.bad || err != nil || c.i != len(c.b)
}

// SignText signs a text that is stored outside a journal, such as a backup's manifest. The text's first line must name its
// purpose.
func SignText(s Signer, text []byte) (signature []byte, err error) {
	made, err := sealed(s, "", text)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%q", base64.StdEncoding.EncodeToString(made.Sig)), nil
}

// VerifyText checks a signature of SignText with an authorized-key line.
func VerifyText(key string, text, signature []byte) error {
	sig, err := base64.StdEncoding.Strict().DecodeString(string(bytes.Trim(signature, `"`)))
	if err != nil {
		return errSignature
	}
	return (&seal{Key: key, Sig: sig}).verify(text)
}

// readSmall reads a file of a few lines, or returns nil if it does not exist.
func readSmall(fsys FS, dir, name string) (text []byte, err error) {
	f, err := fsys.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err == nil && size > MaxLine {
		return nil, &DamageError{File: filepath.Join(dir, name), Reason: "it is longer than such a file gets"}
	}
	text = make([]byte, size)
	if err == nil && size > 0 {
		_, err = f.ReadAt(text, 0)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// temporary is the suffix of incomplete files.
const temporary = ".tmp"

// replace writes a file atomically and durably: readers find the old file or the new one. write gets the empty new file.
func replace(fsys FS, dir, name string, write func(f File) error) error {
	path := filepath.Join(dir, name)
	err := writeFile(fsys, path+temporary, write)
	if err == nil {
		err = fsys.Rename(path+temporary, path)
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeFile rewrites a file and syncs it, but not its name.
func writeFile(fsys FS, path string, write func(f File) error) error {
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	if err = f.Truncate(0); err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeAll returns a function that writes text at the start of a file.
func writeAll(text []byte) func(f File) error {
	return func(f File) error {
		n, err := f.WriteAt(text, 0)
		if err == nil && n < len(text) {
			err = io.ErrShortWrite
		}
		return err
	}
}

// removeIfThere removes a file, which may be missing.
func removeIfThere(fsys FS, path string) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
