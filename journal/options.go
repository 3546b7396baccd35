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
	DefaultReserveBytes    = 1 << 20 // for owners that want a reserve
)

// Options say where a journal is and how it is kept.
type Options struct {
	// Dir is the journal's directory. Open makes it if it is missing; its parent must exist.
	Dir string

	// FS is the file system; nil means OSFS.
	FS FS

	// SegmentBytes is the length in bytes that a segment does not exceed, except for a single batch that is longer, for what
	// is written from the reserve, and for what is written while no other segment can be made. RotateDue ends it at three
	// quarters of that, so that an owner has time to call Rotate.
	SegmentBytes int64

	// ReserveBytes is what the disk is to keep for entries that FlushFromReserve writes, in bytes. Up to twice as much is
	// allocated beyond the end of the journal. 0 means nothing: so it is also if the file system cannot do it.
	ReserveBytes int64

	// CheckpointEvery is the number of synced entries after which a checkpoint is due.
	CheckpointEvery int

	// Signer signs checkpoints; nil means that none are written.
	Signer Signer

	// Now is the clock of checkpoints; nil means time.Now.
	Now func() time.Time

	// Trouble reports a failure that does no harm to the entries: a checkpoint or head mark that
	// was not written. It is called on the goroutine where that happened and must not call the Log.
	// It may be nil.
	Trouble func(error)
}

var errOptions = errors.New("journal options are not usable")

// withDefaults fills in what was left out. key is the canonical form of the signer's key.
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
