package journal

// A Recovery is what Open found and did.
type Recovery struct {
	Entries       uint64 // entries in the journal now
	Head          Head   // the last of them
	Segments      int
	Vouched       uint64   // the last entry that a checkpoint or the head mark was found right about
	Cut           *Cut     // what was cut off the last segment; nil where nothing was
	CheckpointCut int64    // bytes of a torn checkpoint that were cut
	Notes         []string // other things that an operator should read
}

// A Cut is the end of a write that never finished: nobody was told that it was durable, unless it is Answered.
type Cut struct {
	File   string // path of the segment
	Offset int64  // its length now, in bytes
	Bytes  int64  // what was cut
	After  uint64 // the last entry before the cut; 0 where none is left

	// Answered says that the head mark knew the torn line whole and on disk: the entry after After is lost, and somebody
	// may have been told that it was done. No crash leaves that where fsync tells the truth.
	Answered bool
}
