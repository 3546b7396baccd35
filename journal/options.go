package journal

import (
	"errors"
	"fmt"
	"time"
)

// Defaults of Options.
const (
	DefaultSegmentBytes    = 64 << 20
	DefaultCheckpointEvery = 1024
	DefaultReserveBytes    = 1 << 20 // for owners that keep a reserve
)

// Options configure a journal.
type Options struct {
	// Dir is the journal's directory. Open creates it if it is missing; its parent must exist.
	Dir string

	// FS is the file system; nil means OSFS.
	FS FS

	// SegmentBytes is the maximum length of a segment in bytes. Exceptions are a single batch that is longer, writes from
	// the reserve, and writes while no other segment can be made. RotateDue is true at three quarters of it, so that an
	// owner has time to call Rotate.
	SegmentBytes int64

	// ReserveBytes is the room in bytes that the disk keeps for entries that FlushFromReserve writes. Up to twice as much
	// is allocated after the end of the journal. 0 means none, which is also the case if the file system cannot allocate.
	ReserveBytes int64

	// CheckpointEvery is the number of synced entries after which a checkpoint is due.
	CheckpointEvery int

	// Signer signs checkpoints; nil means that none are written.
	Signer Signer

	// Now is the clock of checkpoints; nil means time.Now.
	Now func() time.Time

	// Trouble reports a failure that does not affect the entries: a checkpoint or head mark that was not written. It is
	// called on the goroutine of the failure and must not call the Log. It may be nil.
	Trouble func(error)
}

var errOptions = errors.New("journal options are not usable")

// withDefaults fills in defaults. key is the canonical form of the signer's key.
func (o Options) withDefaults() (_ Options, key string, err error) {
	if o.FS == nil {
		o.FS = OSFS{}
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.CheckpointEvery == 0 {
		o.CheckpointEvery = DefaultCheckpointEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Trouble == nil {
		o.Trouble = func(error) {}
	}
	if o.Dir == "" || o.SegmentBytes < 0 || o.CheckpointEvery < 0 || o.ReserveBytes < 0 {
		return o, "", fmt.Errorf("%w: directory %q, segment bytes %d, checkpoint every %d, reserve bytes %d",
			errOptions, o.Dir, o.SegmentBytes, o.CheckpointEvery, o.ReserveBytes)
	}
	if o.Signer != nil {
		_, key, err = parseKey(o.Signer.Public())
	}
	return o, key, err
}
