package journal

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
)

const checkpointsName = "checkpoints"

// A Signer is the host key. It must be safe for use by several goroutines.
type Signer interface {
	// Public is the key's authorized-key line, which must begin with ssh-ed25519.
	Public() string

	// Sign returns the 64 bytes of an Ed25519 signature over data as it is.
	Sign(data []byte) ([]byte, error)
}

// A Checkpoint is a head of the chain, signed: the entry Seq was on disk and its line had this hash, hence so had every
// line before it. A copy of one, kept where the kernel's user cannot write, is what shows a journal that was cut short.
type Checkpoint struct {
	Head

	Time int64  // Unix milliseconds
	Key  string // authorized-key line, without comment
	Sig  []byte // Ed25519 over the text of text
}

var (
	errCheckpointLine = errors.New("line is not a checkpoint")
	errSignature      = errors.New("signature does not match")
)

// text is what is signed. Each part is a line of its own, so no two checkpoints share a text, and the first line keeps
// the signature from being taken for one over anything else that the host key signs.
func (c *Checkpoint) text() []byte {
	return fmt.Appendf(nil, "pwos-checkpoint@v1\n%d\n%s\n%d\n", c.Seq, c.Hash, c.Time)
}

// Verify checks the signature against the key that the checkpoint names; whether that key is to be trusted is another
// question.
func (c *Checkpoint) Verify() error {
	key, _, err := parseKey(c.Key)
	if err != nil {
		return fmt.Errorf("verify checkpoint: %w", err)
	}
	if !ed25519.Verify(key, c.text(), c.Sig) {
		return fmt.Errorf("verify checkpoint: %w", errSignature)
	}
	return nil
}

// AppendLine appends the checkpoint as its line in the file, without '\n'.
func (c *Checkpoint) AppendLine(dst []byte) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, c.Seq, 10)
	dst = append(dst, `,"hash":"`...)
	dst = appendHash(dst, &c.Hash)
	dst = append(dst, `","time":`...)
	dst = strconv.AppendInt(dst, c.Time, 10)
	dst = append(dst, `,"key":`...)
	dst = appendString(dst, c.Key)
	dst = append(dst, `,"sig":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, c.Sig)
	return append(dst, `"}`...)
}

// ParseCheckpoint reads what AppendLine writes. It does not check the signature.
func ParseCheckpoint(line []byte) (Checkpoint, error) {
	var cp Checkpoint
	c := cursor{b: line}
	c.word(`{"seq":`)
	cp.Seq = c.uint()
	c.word(`,"hash":"`)
	c.hash(&cp.Hash)
	c.word(`","time":`)
	cp.Time = c.int()
	c.word(`,"key":`)
	cp.Key = c.text("")
	c.word(`,"sig":`)
	sig := c.text("")
	c.word(`}`)
	var err error
	cp.Sig, err = base64.StdEncoding.DecodeString(sig)
	// Base64 has several forms of one value; comparing with our own leaves one.
	if c.bad || err != nil || cp.Seq == 0 || string(cp.AppendLine(nil)) != string(line) {
		return Checkpoint{}, errCheckpointLine
	}
	return cp, nil
}

// signCheckpoint makes the checkpoint of h, and does not trust the signer with more than it must: a signature that nobody
// could verify would look like tampering for as long as the journal lives.
func signCheckpoint(s Signer, key string, h Head, ms int64) (Checkpoint, error) {
	c := Checkpoint{Head: h, Time: ms, Key: key}
	var err error
	if c.Sig, err = s.Sign(c.text()); err != nil {
		return Checkpoint{}, fmt.Errorf("sign checkpoint: %w", err)
	}
	return c, c.Verify()
}
