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

// File is a file that was read.
type File struct {
	Data   []byte
	Digest string // of Data, see Digest
	// Executable reports whether its owner may execute it.
	Executable bool
}

// Digest returns the SHA-256 of data in the form of subresource integrity, "sha256-" and base64, by which the same content
// can be requested again.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Tree reads below the directories of one space. It is safe for concurrent use.
type Tree struct {
	roots map[string]*os.Root
}

// Open opens the directories of a space, which stay open until Close, also if they are renamed or replaced.
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

// Read returns the file at p, which must be a place of the tree's space. The error for a file of more than most bytes is
// FileTooLarge, also if it grows while it is read; at most most+1 bytes are kept in memory. The error is a fault, and does
// not reveal the path of root.
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
		return File{}, fault.FileNotLocal.New("it is not below root")
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

// openRegular opens a regular file. It checks the file before it opens it, since opening a device may have an effect, and
// again afterwards, since the file may have been replaced. It does not block on a pipe that replaced it.
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

func notRegular() *fault.Fault { return fault.FileNotRegular.New("it is not a regular file") }

// refusal converts an error of the system. It drops the text, which may reveal the path of root, or the target of a link.
func refusal(err error) *fault.Fault {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return fault.FileNotFound.New("there is no such file below root")
	default:
		return fault.FileForbidden.New("the file cannot be read: it leads out of root, or the kernel has no permission")
	}
}
