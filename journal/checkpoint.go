package journal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const checkpointsName = "checkpoints"

// A Signer is the host key. It must be safe for concurrent use.
type Signer interface {
	// Public is the key's authorized-key line, which must begin with ssh-ed25519.
	Public() string

	// Sign returns the 64 bytes of an Ed25519 signature over data.
	Sign(data []byte) ([]byte, error)
}

// A Checkpoint is a signed head of the chain: entry Seq was on disk, and its line had this hash, which covers every line
// before it. A copy of it that the kernel's user cannot write shows whether a journal was cut.
type Checkpoint struct {
	Head

	Time int64 // Unix milliseconds
	seal
}

var errCheckpointLine = errors.New("line is not a checkpoint")

// text returns the text that is signed. Each part is a line, so no two checkpoints have the same text. The first line names
// the purpose, so the signature is not valid for anything else that the host key signs.
func (c *Checkpoint) text() []byte {
	return fmt.Appendf(nil, "pwos-checkpoint@v1\n%d\n%s\n%d\n", c.Seq, c.Hash, c.Time)
}

// Verify checks the signature against the key that the checkpoint names. It does not decide whether
// that key is trusted.
func (c *Checkpoint) Verify() error {
	if err := c.verify(c.text()); err != nil {
		return fmt.Errorf("verify checkpoint: %w", err)
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
	return appendSeal(dst, &c.seal)
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
	c.seal(&cp.seal)
	// Base64 has several forms of one value; the comparison allows only ours.
	if c.bad || cp.Seq == 0 || string(cp.AppendLine(nil)) != string(line) {
		return Checkpoint{}, errCheckpointLine
	}
	return cp, nil
}

// signCheckpoint returns the signed checkpoint of h.
func signCheckpoint(s Signer, key string, h Head, ms int64) (c Checkpoint, err error) {
	c = Checkpoint{Head: h, Time: ms}
	if c.seal, err = sealed(s, key, c.text()); err != nil {
		return Checkpoint{}, fmt.Errorf("sign checkpoint: %w", err)
	}
	return c, nil
}

// A HeadSigner signs checkpoints, as of each message of a stream.
type HeadSigner struct {
	signer Signer
	key    string // canonical line of its key
}

// NewHeadSigner returns a HeadSigner, after it has verified a signature of the signer: verifying each takes twice as long as
// signing it.
func NewHeadSigner(s Signer) (*HeadSigner, error) {
	_, key, err := parseKey(s.Public())
	if err != nil {
		return nil, err
	}
	if _, err := signCheckpoint(s, key, Head{}, 0); err != nil {
		return nil, err
	}
	return &HeadSigner{s, key}, nil
}

// Key returns the line of authorized_keys with which checkpoints name the key.
func (s *HeadSigner) Key() string { return s.key }

// Sign returns the signed checkpoint of an entry that is written.
func (s *HeadSigner) Sign(h Head, at time.Time) (c Checkpoint, err error) {
	c = Checkpoint{Head: h, Time: at.UnixMilli(), seal: seal{Key: s.key}}
	if c.Sig, err = s.signer.Sign(c.text()); err != nil {
		return Checkpoint{}, fmt.Errorf("sign checkpoint: %w", err)
	}
	return c, nil
}

// CheckpointDue reports whether Options.CheckpointEvery entries were synced since the last
// checkpoint or attempt, or Rotate has ended a segment. It is false while a checkpoint is being
// written; ask again after that.
func (l *Log) CheckpointDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opt.Signer != nil && l.dead == nil && !l.signing && (l.ended.Seq > 0 || l.synced.Seq >= l.checkDue)
}

// CheckpointWaits reports whether a sync would make a checkpoint due. The owner may have no other reason to sync.
func (l *Log) CheckpointWaits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opt.Signer != nil && l.dead == nil && l.flushed.Seq >= l.checkDue && l.synced.Seq < l.checkDue
}

// Unsign stops the signing of checkpoints, also at Close, because the key must not vouch for these entries. The owner calls
// it before anything is appended.
func (l *Log) Unsign() { l.opt.Signer = nil }

// Checkpoint signs the last synced entry, and the last one of a segment that Rotate ended, and writes the checkpoints that
// are due, durably. After an error other than ErrStopped the journal stays usable: the next attempt is due after
// CheckpointEvery more entries.
func (l *Log) Checkpoint() error { return l.checkpointSynced(uint64(l.opt.CheckpointEvery)) }

// checkpointSynced writes the checkpoint of a segment's end, and that of the synced entries if there are at least after of
// them since the last one.
func (l *Log) checkpointSynced(after uint64) error {
	if l.opt.Signer == nil {
		return nil
	}
	l.checkMu.Lock()
	defer l.checkMu.Unlock()
	defer l.signed()
	for more := true; more; {
		var h Head
		var err error
		if h, more, err = l.nextCheckpoint(after); err != nil || h.Seq == 0 {
			return err
		}
		if err := l.writeCheckpoint(h); err != nil {
			l.opt.Trouble(err)
			return err
		}
	}
	return nil
}

// nextCheckpoint returns the head of the next checkpoint to write, or the zero Head. If more is true, it is a segment's
// end, and another may be due. checkMu is locked.
func (l *Log) nextCheckpoint(after uint64) (h Head, more bool, dead error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, l.ended = l.ended, Head{}
	if more = h.Seq > l.checked; !more {
		h = l.synced
		if h.Seq <= l.checked || h.Seq < l.checked+after {
			h = Head{}
		}
	}
	if l.dead != nil || h.Seq == 0 {
		return Head{}, false, l.dead
	}
	// Set before the attempt, so that a failed one is not repeated at each fsync.
	l.checkDue = h.Seq + uint64(l.opt.CheckpointEvery)
	l.signing = true
	return h, more, nil
}

func (l *Log) signed() {
	l.mu.Lock()
	l.signing = false
	l.mu.Unlock()
}

// writeCheckpoint appends the checkpoint of h. h is already durable, so no power cut can leave a checkpoint of a lost
// entry. checkMu is locked.
func (l *Log) writeCheckpoint(h Head) error {
	if err := l.cutCheckpoint(); err != nil {
		return err
	}
	c, err := signCheckpoint(l.opt.Signer, l.key, h, l.opt.Now().UnixMilli())
	if err != nil {
		return err
	}
	l.checkBuf = append(c.AppendLine(l.checkBuf[:0]), '\n')
	// If no room can be reserved, the write itself fails.
	_ = l.keep(&l.checkRoom, l.checks, l.checkSize, int64(len(l.checkBuf)), checkpointRoom)
	n, err := l.checks.WriteAt(l.checkBuf, l.checkSize)
	if err == nil && n < len(l.checkBuf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		l.checkCut = true
		return errors.Join(fmt.Errorf("write checkpoint: %w", err), l.cutCheckpoint())
	}
	if err := l.checks.Sync(); err != nil {
		return l.stop(fmt.Errorf("sync checkpoints: %w", err))
	}
	l.checkSize += int64(n)
	l.checked = h.Seq
	return nil
}

// cutCheckpoint removes the rest of a checkpoint that a failed write left, durably before the next one is written, as
// cutBack does. checkMu is locked.
func (l *Log) cutCheckpoint() error {
	if !l.checkCut {
		return nil
	}
	if err := l.checks.Truncate(l.checkSize); err != nil {
		return fmt.Errorf("cut failed checkpoint off: %w", err)
	}
	l.checkRoom.gaveBack(l.checkSize)
	if err := l.checks.Sync(); err != nil {
		return l.stop(fmt.Errorf("sync checkpoints: %w", err))
	}
	l.checkCut = false
	return nil
}

// checkpointReader reads a checkpoints file. Each line was synced before the next was begun, so a power cut can have torn
// only the last one.
type checkpointReader struct {
	path  string
	lines *lineReader
	close func() error
	last  uint64 // seq of the last good checkpoint
	torn  int64  // bytes of a torn last line, known after io.EOF
	over  bool   // nothing can be read after a line that is too long
}

// openCheckpoints returns nil if dir has no such file.
func openCheckpoints(fsys FS, dir string) (*checkpointReader, error) {
	path := filepath.Join(dir, checkpointsName)
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return &checkpointReader{path: path, lines: newLineReader(f, 0), close: f.Close}, nil
}

// next returns the next checkpoint without checking its signature, or io.EOF. A *DamageError is
// about one line; reading may continue after it.
func (r *checkpointReader) next() (Checkpoint, error) {
	if r.over {
		return Checkpoint{}, io.EOF
	}
	off := r.lines.off
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		r.torn += r.lines.rest()
		return Checkpoint{}, io.EOF
	}
	if errors.Is(err, errLongLine) {
		r.over = true
		return Checkpoint{}, r.damage(off, 0, err.Error())
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoints: %w", err)
	}
	// If there is a hole with a line end after it, the line was longer than a sector, and its last sector was written
	// first.
	cp, err := ParseCheckpoint(line)
	if err != nil && bytes.IndexByte(line, 0) >= 0 && r.atEnd() {
		r.torn = int64(len(line)) + 1
		return Checkpoint{}, io.EOF
	}
	if err != nil {
		return Checkpoint{}, r.damage(off, 0, err.Error())
	}
	if cp.Seq <= r.last {
		return Checkpoint{}, r.damage(off, cp.Seq, fmt.Sprintf("checkpoint of entry %d follows that of entry %d", cp.Seq, r.last))
	}
	r.last = cp.Seq
	return cp, nil
}

// atEnd reports whether the line just read was the last thing in the file.
func (r *checkpointReader) atEnd() bool {
	if r.lines.rest() > 0 {
		return false
	}
	return errors.Is(r.lines.fill(), io.EOF)
}

func (r *checkpointReader) damage(off int64, seq uint64, reason string) *DamageError {
	return &DamageError{
		File: r.path, Line: r.lines.line, Offset: off, Seq: seq,
		Reason: reason, Remedy: remedyCheckpoints,
	}
}

const keyType = "ssh-ed25519"

var errKey = errors.New("not an " + keyType + " public key line")

// parseKey reads an authorized-key line, with or without a comment, and returns the key and the line's canonical form: type
// and blob only. A host key is always ssh-ed25519 (PROTOCOL 4).
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

// Covering returns the first checkpoint in dir that covers an entry. It does not check the signature, and skips damaged
// lines, which Verify reports. ok is false if there is none yet. A nil fsys means OSFS.
func Covering(fsys FS, dir string, seq uint64) (cp Checkpoint, ok bool, err error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	r, err := openCheckpoints(fsys, dir)
	if err != nil || r == nil {
		return Checkpoint{}, false, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for {
		cp, err := r.next()
		var damage *DamageError
		switch {
		case errors.Is(err, io.EOF):
			return Checkpoint{}, false, nil
		case errors.As(err, &damage):
		case err != nil:
			return Checkpoint{}, false, err
		case cp.Seq >= seq:
			return cp, true, nil
		}
	}
}
