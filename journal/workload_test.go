package journal_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// A workload is a random history of a journal on a disk whose power may fail at each operation. It has a model: the lines
// that were appended and flushed, and how many of them Sync has covered.
type workload struct {
	r    *rand.Rand
	disk *faultfs.Disk
	opt  journal.Options
	log  *journal.Log

	text   []byte // the lines, each with its '\n'
	ends   []int  // where the line of entry i+1 ends in text
	prev   [sha256.Size]byte
	synced uint64

	faults   *faultfs.Failing // between the log and the disk; nil if nothing fails
	stopped  bool             // the log returned ErrStopped
	left     *workload        // the model with the entries of an ErrUncertain; nil: none
	tight    bool             // other files have taken most of the disk
	syncing  bool             // during a call of Sync
	rotates  bool             // the owner calls Rotate when it is due
	rotating bool             // during a call of Rotate
	flushed  int              // entries whose Flush did not fail
	cutEvery int              // one in so many operations cuts the power
	points   int64
	err      error
}

func newWorkload(seed uint64, disk *faultfs.Disk) *workload {
	w := &workload{r: rand.New(rand.NewPCG(seed, 7)), disk: disk, cutEvery: 1}
	w.opt = journal.Options{Dir: dir, Now: clock, CheckpointEvery: 1 + w.r.IntN(12)}
	w.opt.SegmentBytes = []int64{600, 3000, 1 << 20}[w.r.IntN(3)]
	if w.r.IntN(4) == 0 {
		w.opt.Signer = newHostKey(1)
	}
	w.opt.ReserveBytes = []int64{0, 900, 5000}[w.r.IntN(3)]
	w.rotates = w.r.IntN(2) == 0
	return w
}

func (w *workload) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// expect fails the workload for an error that neither a fault nor a full disk explains.
func (w *workload) expect(what string, err error) {
	if w.tight && errors.Is(err, syscall.ENOSPC) && !errors.Is(err, journal.ErrStopped) {
		return
	}
	if err != nil && (w.faults == nil || w.faults.Hit() == "") {
		w.fail("%s: %w", what, err)
	}
}

// run runs a few starts, each ended by Close, by a kill, or by a power cut after which the workload continues.
func (w *workload) run() {
	for range 1 + w.r.IntN(4) {
		w.start()
		for range w.r.IntN(10) {
			if w.err == nil && !w.stopped {
				w.step()
			}
		}
		if w.err == nil {
			w.end()
		}
	}
	w.start()
}

func (w *workload) end() {
	switch w.r.IntN(3) {
	case 0:
		err := w.log.Close()
		w.expect("close", err)
		if err == nil {
			w.synced = uint64(len(w.ends))
		}
		w.disk.Kill()
	case 1:
		w.disk.Kill()
	default:
		w.disk = w.disk.Crash(w.r, faultfs.Outcome(w.r.IntN(faultfs.Outcomes)))
	}
}

func (w *workload) start() {
	if w.err != nil {
		return
	}
	w.disk.Hook = w.cut
	w.opt.FS = w.disk
	if w.faults != nil {
		w.faults.FS = w.disk
		w.opt.FS = w.faults
	}
	log, rec, err := journal.Open(w.opt)
	for try := 0; err != nil && w.faults != nil && w.faults.Hit() != "" && try < 2; try++ {
		// At most two operations fail, so the third start must succeed.
		log, rec, err = journal.Open(w.opt)
	}
	if err != nil {
		w.fail("start: %w", err)
		return
	}
	if w.compare(w.disk, rec); w.err != nil {
		return
	}
	// What a power cut took is lost, and what was found must not be lost any more.
	w.log, w.stopped, w.synced = log, false, rec.Head.Seq
	if left := w.left; left != nil && left.matches(w.disk, rec) == nil {
		w.text, w.ends = left.text, left.ends
	}
	w.left = nil
	w.forget(int(w.synced))
	w.flushed = len(w.ends)
}

// forget reduces the model to n entries.
func (w *workload) forget(n int) {
	w.ends, w.flushed = w.ends[:n], min(w.flushed, n)
	w.text = w.text[:w.length(n)]
	w.prev = [sha256.Size]byte{}
	if n > 0 {
		w.prev = sha256.Sum256(w.text[w.length(n-1) : len(w.text)-1])
	}
}

// length returns the length of the text of the first n entries.
func (w *workload) length(n int) int {
	if n == 0 {
		return 0
	}
	return w.ends[n-1]
}

func (w *workload) step() {
	switch w.r.IntN(6) {
	case 0:
		w.tight = true
		w.disk.Leave(w.r.Int64N(4000))
	case 1:
		w.tight = false
		w.disk.Free()
	}
	w.append()
	if w.rotates && w.log.RotateDue() {
		w.rotating = true
		w.covers("rotate", w.log.Rotate)
		w.rotating = false
		if !w.stopped && w.log.RotateDue() {
			w.fail("another segment is due right after one was begun or could not be")
		}
	}
	w.flush()
	if w.stopped || w.r.IntN(2) == 0 {
		return
	}
	w.syncing = true
	w.covers("sync", w.log.Sync)
	w.syncing = false
	if w.rotates || w.r.IntN(2) == 0 {
		w.expect("checkpoint", w.log.Checkpoint())
	}
}

// covers compares the result of a Sync or a Rotate with the model.
func (w *workload) covers(what string, sync func() (uint64, error)) {
	through, err := sync()
	w.expect(what, err)
	w.stopped = w.stopped || err != nil
	if through < w.synced || through > uint64(w.flushed) {
		w.fail("%s covers entry %d of %d, and covered %d before", what, through, w.flushed, w.synced)
	}
	w.synced = through
}

// append appends a batch to the model and to the log; first to the model, since a crash may leave what is being written.
func (w *workload) append() {
	for range 1 + w.r.IntN(4) {
		size := w.r.IntN(40)
		if w.r.IntN(8) == 0 {
			size = w.r.IntN(2500)
		}
		seq := uint64(len(w.ends)) + 1
		e := entry(seq, size)
		e.Time += w.r.Int64N(1000) // so that a dropped entry differs from the one that gets its seq
		text := line(seq, w.prev, e)
		w.prev = sha256.Sum256([]byte(text))
		w.text = append(append(w.text, text...), '\n')
		w.ends = append(w.ends, len(w.text))
		if got := w.log.Append(e); got != seq {
			w.fail("appended entry %d as %d", seq, got)
		}
	}
}

// flush writes the appended entries, or removes them from the model.
func (w *workload) flush() {
	before := w.flushed
	flush := w.log.Flush
	if w.r.IntN(3) == 0 {
		flush = w.log.FlushFromReserve
	}
	err := flush()
	w.expect("flush", err)
	defer func() { w.flushed = len(w.ends) }()
	switch {
	case err == nil:
		w.left = nil
	case errors.Is(err, journal.ErrStopped):
		w.stopped = true // the entries may be there or not
	case errors.Is(err, journal.ErrUncertain):
		w.left = &workload{text: slices.Clone(w.text), ends: slices.Clone(w.ends), synced: w.synced} // a crash may bring them back
		w.forget(before)
	default:
		w.forget(before) // and it must not
	}
}

// cut is the disk's hook. During an fsync of a segment more may be written, as an owner of a log does, except where the log
// would wait for the end of that fsync. While a segment is started, more is appended.
func (w *workload) cut(op faultfs.Op) {
	if op.Kind == faultfs.Sync && w.syncing && w.faults == nil && !w.tight && w.opt.SegmentBytes == 1<<20 && w.r.IntN(3) == 0 {
		w.syncing = false
		w.append()
		w.flush()
	}
	if w.rotating && w.r.IntN(3) == 0 {
		w.append()
	}
	if w.err == nil && w.r.IntN(w.cutEvery) == 0 {
		w.recoverFrom(w.disk, 0)
	}
}

// recoverFrom cuts the power of disk, and again while the journal recovers.
func (w *workload) recoverFrom(disk *faultfs.Disk, depth int) {
	w.points++
	after := disk.Crash(w.r, faultfs.Outcome(w.r.IntN(faultfs.Outcomes)))
	again := w.r.IntN(16) // the operation of the recovery at which the power is cut, if it has as many
	after.Hook = func(faultfs.Op) {
		if again--; again == 0 && depth < 3 && w.err == nil {
			w.recoverFrom(after, depth+1)
		}
	}
	opt := w.opt
	opt.FS = after
	log, rec, err := journal.Open(opt)
	if err != nil {
		w.fail("start after a power cut: %w", err)
		return
	}
	w.compare(after, rec)
	if w.err == nil && w.points%16 == 0 {
		w.goOn(after, log, rec)
	}
}

// compare compares what a start found with the model.
func (w *workload) compare(disk *faultfs.Disk, rec *journal.Recovery) {
	err := w.matches(disk, rec)
	if err != nil && (w.left == nil || w.left.matches(disk, rec) != nil) {
		w.fail("%w", err)
	}
}

func (w *workload) matches(disk *faultfs.Disk, rec *journal.Recovery) error {
	n := rec.Head.Seq
	if n < w.synced || n > uint64(len(w.ends)) {
		return fmt.Errorf("%w: found %d entries of %d, and %d were synced", errLost, n, len(w.ends), w.synced)
	}
	if got := segments(disk.Image()); got != string(w.text[:w.length(int(n))]) {
		return fmt.Errorf("%w: the %d entries found are not the ones appended", errLost, n)
	}
	return nil
}

// goOn continues to write after a recovery: the new entries are as durable as the old ones, and the result is a valid
// journal.
func (w *workload) goOn(disk *faultfs.Disk, log *journal.Log, rec *journal.Recovery) {
	disk.Hook = nil
	disk.Free()
	for i := range 3 {
		log.Append(entry(rec.Head.Seq+uint64(i)+1, 10))
	}
	if err := log.Flush(); err != nil {
		w.fail("flush after recovery: %w", err)
	}
	if _, err := log.Sync(); err != nil {
		w.fail("sync after recovery: %w", err)
	}
	disk = disk.Crash(w.r, faultfs.LoseAll)
	report, err := journal.Verify(context.Background(), disk, dir, journal.VerifyOptions{})
	if err != nil || !report.OK() || report.Head.Seq != rec.Head.Seq+3 {
		w.fail("%w: verify after recovery and growth: %+v, %w", errLost, report, err)
	}
}

// segments concatenates the segments of an image.
func segments(image map[string][]byte) string {
	var paths []string
	for path := range image {
		if strings.HasSuffix(path, ".ndjson") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var all strings.Builder
	for _, path := range paths {
		all.Write(image[path])
	}
	return all.String()
}
