package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
)

// Identities says where a program finds the keys to sign with.
type Identities struct {
	// Identity is the path of the one key to use, private or public; an ssh-agent that holds it is
	// preferred to the file, since it needs no passphrase. Empty: any key of the agent, then any of
	// Files.
	Identity string
	// AgentSocket is $SSH_AUTH_SOCK; empty: there is no agent.
	AgentSocket string
	// Files are the key files to try; missing ones are skipped. See DefaultKeyFiles.
	Files []string
	// Passphrase asks for the passphrase of a key file. If nil, encrypted keys are not used.
	Passphrase Passphrase
	// ListTime bounds how long an agent may take to list its keys, SignTime how long to sign. Default 3 s and 10 s.
	ListTime, SignTime time.Duration
}

// Candidates are the keys that were found, in the order in which to try them.
type Candidates struct {
	Signers []*Signer
	// Skipped says why each skipped key, or the agent, was skipped, a sentence each.
	Skipped []string
}

// Find looks for keys, without asking for a passphrase. If no key can sign it returns a
// *fault.Fault, which wraps the agent's error if that is the reason, or ctx's cause.
func (i *Identities) Find(ctx context.Context) (*Candidates, error) {
	var agentErr error
	var held []*Signer
	if i.AgentSocket != "" {
		keys := &agentKeys{socket: i.AgentSocket, listTime: i.ListTime, signTime: i.SignTime}
		if held, agentErr = keys.list(ctx); agentErr == nil && len(held) == 0 {
			agentErr = fault.AuthNoIdentity.New("the ssh-agent has no key that is accepted: add one with ssh-add, or unlock it with \"ssh-add -X\"")
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if i.Identity != "" {
		return i.named(held, agentErr)
	}
	c := &Candidates{Signers: held}
	c.skip(agentErr)
	for _, path := range i.Files {
		key, signer, err := readKeyFile(path, i.Passphrase)
		switch {
		case errors.Is(err, fault.AuthNoIdentity): // most default files do not exist
		case err != nil:
			c.skip(err)
		case slices.ContainsFunc(c.Signers, func(s *Signer) bool { return s.key == key }): // the agent has it
		case signer == nil:
			c.skip(badKeyFile(path, "holds no private key that can be used from a file"))
		default:
			c.Signers = append(c.Signers, signer)
		}
	}
	if len(c.Signers) == 0 {
		return nil, noIdentity(c.Skipped).Wrap(agentErr)
	}
	return c, nil
}

// named finds the one key that the caller named.
func (i *Identities) named(held []*Signer, agentErr error) (*Candidates, error) {
	key, signer, err := readKeyFile(i.Identity, i.Passphrase)
	if err != nil {
		return nil, err
	}
	if n := slices.IndexFunc(held, func(s *Signer) bool { return s.key == key }); n >= 0 {
		signer = held[n]
	}
	c := &Candidates{}
	if signer == nil {
		c.skip(badKeyFile(i.Identity, "holds no private key that can be used from a file, and the ssh-agent does not have it").With("key", key.Fingerprint()))
		c.skip(agentErr)
		return nil, noIdentity(c.Skipped).With("key", key.Fingerprint()).Wrap(agentErr)
	}
	c.Signers = []*Signer{signer}
	return c, nil
}

func (c *Candidates) skip(err error) {
	if err != nil {
		c.Skipped = append(c.Skipped, err.Error())
	}
}

// noIdentity is the error if there is no key to sign with. It says why each was skipped.
func noIdentity(skipped []string) *fault.Fault {
	why := ""
	if len(skipped) > 0 {
		why = " (" + strings.Join(skipped, "; ") + ")"
	}
	return fault.AuthNoIdentity.New("there is no key to sign with%s: make one with \"ssh-keygen -t ed25519\", add one with ssh-add, or name one with --identity", why)
}

// Source reads a file of authorized keys, and reads it again when it has changed. It may be used by
// many goroutines.
type Source struct {
	path  string
	now   func() time.Time
	parse func(text []byte, zone *time.Location) *AuthorizedKeys

	mu      sync.Mutex
	keys    *AuthorizedKeys
	file    *os.File  // from which keys was read; kept open, so that no lease or mode prevents reading it again
	seen    fileStamp // of that file
	settled bool      // whether every later change would change the stamp
	sum     [sha256.Size]byte
	trouble error // why an earlier Load's keys are still in use
}

// NewSource returns a Source of the file at path; now is the clock. Nothing is read yet.
func NewSource(path string, now func() time.Time) *Source {
	return &Source{path: path, now: now, parse: ParseAuthorizedKeys}
}

// NewMemberSource is NewSource for a file of the members of a cluster.
func NewMemberSource(path string, now func() time.Time) *Source {
	return &Source{path: path, now: now, parse: ParseMembers}
}

// Close closes the file. The next Load opens it again.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file, s.keys = nil, nil
	return file.Close()
}

// Trouble returns why the last Load returned keys that had been read before, or nil: the operator
// has to correct the file. It is a fault.PlaceUnsafe, or an error of the file system.
func (s *Source) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// fileStamp identifies the content of a file. Every change of the content changes ctime.
type fileStamp struct {
	dev, ino     uint64
	size         int64
	mode, uid    uint32
	mtime, ctime int64 // nanoseconds since 1970
}

// settleTime is how long after a change another one can leave the stamp as it is: the coarsest file
// systems count time in steps of two seconds.
const settleTime = 2 * time.Second

// Load returns the keys of the file. While its content stays the same, so does the pointer, so that
// a caller logs refused lines once. The error is a fault.PlaceUnsafe, or wraps fs.ErrNotExist or
// another error of the file system. With an error no key is admitted: it never falls back to open
// mode or to an earlier file.
//
// The file must be a regular file of this user or of root, no symbolic link, in a directory of this
// user or of root; neither may be writable by others. If the file no longer fits, or cannot be
// opened, the keys already read stay valid while it is the same file with the same content (see
// Trouble): a change of its mode or a lease on it neither adds nor removes rights.
func (s *Source) Load() (*AuthorizedKeys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refresh()
	if err != nil && !s.stands() {
		s.trouble = nil
		return nil, err
	}
	s.trouble = err
	return s.keys, nil
}

// refresh reads the file if it has changed.
func (s *Source) refresh() error {
	if err := judgeDirOf(s.path); err != nil {
		return err
	}
	if s.keys != nil && s.settled {
		var st unix.Stat_t
		if err := unix.Lstat(s.path, &st); err == nil && stampOf(&st) == s.seen {
			return nil
		}
	}
	file, text, stamp, err := readStable(s.path)
	if err != nil {
		return err
	}
	if s.file != nil {
		_ = s.file.Close() // read only
	}
	changed := time.Unix(0, max(stamp.ctime, stamp.mtime))
	s.file, s.seen, s.settled = file, stamp, s.now().Sub(changed) > settleTime
	if sum := sha256.Sum256(text); s.keys == nil || sum != s.sum {
		s.keys, s.sum = s.parse(text, time.Local), sum
	}
	return nil
}

// stands reports whether the file from which keys was read is still at the path, with the same
// content. If the path cannot be examined, the file must still be linked in some directory.
func (s *Source) stands() bool {
	if s.keys == nil {
		return false
	}
	var there, ours unix.Stat_t
	if unix.Fstat(int(s.file.Fd()), &ours) != nil {
		return false
	}
	switch err := unix.Lstat(s.path, &there); {
	case errors.Is(err, unix.EACCES):
		if ours.Nlink == 0 {
			return false
		}
	case err != nil, there.Dev != ours.Dev, there.Ino != ours.Ino:
		return false
	}
	text, err := io.ReadAll(io.NewSectionReader(s.file, 0, maxKeysFile+1))
	return err == nil && sha256.Sum256(text) == s.sum
}

// readStable reads a file that does not change while it is read, and leaves it open.
func readStable(path string) (*os.File, []byte, fileStamp, error) {
	for range 3 {
		file, text, before, after, err := readOpen(path)
		if err != nil {
			return nil, nil, fileStamp{}, fmt.Errorf("read authorized keys: %w", err)
		}
		if before == after && int64(len(text)) == after.size {
			return file, text, after, nil
		}
		_ = file.Close() // read only
	}
	return nil, nil, fileStamp{}, fault.Unsafe(path, "changes while it is read", "write it under another name, then rename it")
}

// readOnce is readOpen for callers that do not need the open file.
func readOnce(path string) ([]byte, error) {
	file, text, _, _, err := readOpen(path)
	if err != nil {
		return nil, err
	}
	_ = file.Close() // read only
	return text, nil
}

// readOpen checks the file that it reads, not what the path may name a moment later.
func readOpen(path string) (file *os.File, text []byte, before, after fileStamp, err error) {
	// Without O_NONBLOCK the open would wait up to 45 s for a lease of another program, and forever
	// for a FIFO.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		err = fault.Unsafe(path, "is a symbolic link", "name the file itself with --authorized-keys, or copy it")
	case errors.Is(err, unix.EWOULDBLOCK):
		err = fault.Unsafe(path, "cannot be opened while another program holds a lease on it", "end that program (/proc/locks tells its number)")
	case err != nil:
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if err != nil {
		return nil, nil, before, after, err
	}
	file = os.NewFile(uintptr(fd), path)
	text, before, after, err = readJudged(file)
	if err != nil {
		_ = file.Close() // read only
		return nil, nil, before, after, err
	}
	return file, text, before, after, nil
}

func readJudged(file *os.File) (text []byte, before, after fileStamp, err error) {
	path := file.Name()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, before, after, err
	}
	if before = stampOf(&st); before.mode&unix.S_IFMT != unix.S_IFREG {
		return nil, before, after, fault.Unsafe(path, "is not a regular file", "put the keys into a regular file")
	}
	if err := judgeOwner(path, before); err != nil {
		return nil, before, after, err
	}
	if before.size > maxKeysFile {
		return nil, before, after, fault.Unsafe(path, fmt.Sprintf("is over %d bytes long", maxKeysFile), "remove the keys that are not needed")
	}
	if text, err = io.ReadAll(io.LimitReader(file, maxKeysFile+1)); err != nil {
		return nil, before, after, err
	}
	err = unix.Fstat(int(file.Fd()), &st)
	return text, before, stampOf(&st), err
}

// judgeDirOf refuses a directory in which another user could replace path.
func judgeDirOf(path string) error {
	dir := filepath.Dir(path)
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("inspect authorized keys: %w", &fs.PathError{Op: "stat", Path: dir, Err: err})
	}
	return judgeOwner(dir, stampOf(&st))
}

// judgeOwner refuses a file that another user owns or may write.
func judgeOwner(path string, s fileStamp) error {
	if own := uint32(os.Geteuid()); s.uid != own && s.uid != 0 {
		return fault.Unsafe(path, fmt.Sprintf("belongs to user %d, not to user %d", s.uid, own), "look at who wrote it, then copy it")
	}
	if s.mode&0o022 != 0 {
		return fault.Unsafe(path, fmt.Sprintf("is writable by group or others (mode %04o)", s.mode&0o7777),
			fmt.Sprintf("look at what is in it, then run \"chmod go-w %s\"", path),
		)
	}
	return nil
}

func stampOf(st *unix.Stat_t) fileStamp {
	return fileStamp{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size, mode: uint32(st.Mode), uid: st.Uid,
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}
}
