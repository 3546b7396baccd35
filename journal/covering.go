package journal

import (
	"errors"
	"io"
)

// Covering returns the first checkpoint in dir that covers an entry, its signature not checked; ok is false where none
// does yet. Lines of the file that are damaged are passed over: Verify reports them. A nil fsys means OSFS.
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
