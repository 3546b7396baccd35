package rootfs

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// File is what was read.
type File struct {
	Data   []byte
	Digest string // of Data, see Digest
	// Executable reports that its owner may execute it.
	Executable bool
}

// Digest returns the SHA-256 of data the way subresource integrity writes it, "sha256-" and base64: what was read once can
// be asked for again by it.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Tree reads below the directories of one space. It may be used by many goroutines.
type Tree struct {
	roots map[string]*os.Root
}

// Open opens the directories of a space and keeps them open until Close: one that is renamed or
// replaced later stays the same.
func Open(space *uri.Space) (*Tree, error) {
	t := &Tree{roots: make(map[string]*os.Root)}
	for _, dir := range space.Dirs() {
		if t.roots[dir] != nil {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open root: %w", err), t.Close())
		}
		t.roots[dir] = root
	}
	return t, nil
}

// Close closes the directories. Reads in flight end normally.
func (t *Tree) Close() error {
	var err error
	for _, root := range t.roots {
		err = errors.Join(err, root.Close())
	}
	return err
}

// Read returns the file at p, which must be one of the space that the tree was opened for. A file of more than most bytes is
// FileTooLarge, also where it grows while it is read; at most most+1 bytes are kept in memory. The error is a fault, and shows
// nowhere where on the machine root lies.
func (t *Tree) Read(p uri.Place, most int64) (File, error) {
	f, err := t.readPlace(p, most)
	if err != nil {
		return File{}, fault.Prefix(err, "read %s", p.URI)
	}
	return f, nil
}

func (t *Tree) readPlace(p uri.Place, most int64) (File, error) {
	root := t.roots[p.Dir]
	switch {
	case p.Remote() || root == nil:
		return File{}, fault.FileNotLocal.New("it does not lie below root")
	case p.Folder:
		return File{}, notRegular()
	}
	f, info, err := openRegular(root, p.Name)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if info.Size() > most {
		return File{}, fault.FileTooLarge.New("the file is too large: %d bytes, at most %d", info.Size(), most)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return File{}, refusal(err)
	}
	if int64(len(data)) > most {
		return File{}, fault.FileTooLarge.New("the file is too large: more than %d bytes", most)
	}
	return File{Data: data, Digest: Digest(data), Executable: info.Mode()&0o100 != 0}, nil
}

// openRegular opens a regular file. It looks before it opens, since opening a device may do something, and again after that, since
// the file may be another by then; not to block is for the pipe that came in between.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, refusal(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular()
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, refusal(err)
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular()
	} else if err != nil {
		err = refusal(err)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

func notRegular() *fault.Fault { return fault.FileNotRegular.New("it is no regular file") }

// refusal translates an error of the system. Its text is dropped: it may show where root is, or
// where a link leads.
func refusal(err error) *fault.Fault {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return fault.FileNotFound.New("there is no such file below root")
	default:
		return fault.FileForbidden.New("the file cannot be read: it leads out of root, or is closed to the kernel")
	}
}
