package simulation_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/process"
)

// powerCut is a power cut before an operation of the disk, whatever the kernel is doing.
type powerCut struct {
	at  int // number of operations that change the disk, counted down to the cut; 0: no cut is planned
	how faultfs.Outcome
}

// hook is called before each operation that changes the disk.
func (w *world) hook(op faultfs.Op) {
	if w.cut.at > 0 {
		if w.cut.at--; w.cut.at == 0 {
			w.blackout(fmt.Sprintf("before operation %d on %s", op.Kind, op.Path))
		}
	}
	w.gate.Hook(op)
}

// blackout cuts the power. Everything said so far counts; what the kernel does afterwards is lost. The old kernel runs until rise.
func (w *world) blackout(when string) {
	if w.kernel != nil {
		w.listen()
	}
	r := rand.New(rand.NewPCG(w.seed, uint64(w.step)))
	w.left, w.kept = w.disk.Crash(r, w.cut.how), w.store.crash(r, w.cut.how)
	w.note("power cut, outcome %d, %s", w.cut.how, when)
	w.dead, w.cut.at = true, 0
	for _, c := range w.clients {
		c.link.reset()
	}
	w.gate.Open()
}

// rise starts a kernel on the disk that a blackout has left.
func (w *world) rise() {
	w.shut()
	w.found()
	w.boot()
}

// stop waits for the end of a kernel that is ending, and starts another one on the same disk, whose unsynced writes are still there.
func (w *world) stop() {
	w.note("the kernel stops")
	w.shut()
	if w.dead {
		w.found()
	} else {
		w.disk.Kill()
		w.toSecond()
	}
	w.boot()
}

// found replaces the disk and the store by what a blackout has left.
func (w *world) found() {
	w.toSecond()
	w.disk, w.store, w.dead = w.left, w.kept, false
	w.effects.forget()
}

// toSecond sleeps until the next full second, since the duration of a kernel's end depends on its goroutines.
func (w *world) toSecond() {
	now := time.Now()
	time.Sleep(now.Truncate(time.Second).Add(time.Second).Sub(now))
}

// open completes all held syncs one by one, and lets later ones through.
func (w *world) open() {
	for len(w.gate.Held()) > 0 {
		w.gate.Complete(0)
		synctest.Wait()
	}
	w.gate.Open()
}

// boot starts kernels until one is up.
func (w *world) boot() {
	for !w.start() && w.err == nil {
		w.toSecond()
	}
}

// start starts a kernel on the disk. It returns false if the power was cut during the start, or the disk failed.
func (w *world) start() bool {
	w.gate = new(faultfs.Gate)
	w.gate.Open()
	w.files, w.ends = faultfs.NewFailing(w.disk, faultfs.Fault{}), false
	w.disk.Hook = w.hook
	w.disk.Free()
	n := w.r.IntN(10)
	if w.drops("bad start") {
		n = 9
	}
	switch n {
	case 0:
		w.cut = powerCut{1 + w.r.IntN(40), faultfs.Outcome(w.r.IntN(faultfs.Outcomes))}
	case 1:
		w.files.Arm(faultfs.Fault{N: 1 + w.r.IntN(30), Err: syscall.EIO})
	case 2:
		w.disk.Leave(int64(w.r.IntN(1000)))
	}
	err := w.life()
	hit := w.files.Hit()
	w.files.Arm(faultfs.Fault{})
	w.cut.at = 0
	switch {
	case w.dead:
		w.shut()
		w.found()
	case err != nil && w.kernel == nil && (hit != "" || errors.Is(err, syscall.ENOSPC)):
		w.note("start fails at a %s: %v", hit, err)
		w.shut()
	default:
		w.fail(err)
		w.gate.Shut()
		return true
	}
	return false
}

// life opens the journal, restores the state and starts a kernel.
func (w *world) life() (err error) {
	w.journal, _, err = journal.Open(journal.Options{
		Dir: journalDir, FS: w.files, SegmentBytes: 16 << 10, ReserveBytes: w.reserve, Signer: hostKey, CheckpointEvery: 16,
	})
	if err != nil {
		w.journal = nil
		return fmt.Errorf("open journal: %w", err)
	}
	if w.dead {
		return nil
	}
	w.files.Arm(faultfs.Fault{})
	w.disk.Free()
	head := w.journal.Written()
	w.note("boot at %d", head)
	if err := w.oracle.restart(w.disk, head); err != nil {
		return err
	}
	if err := w.verify(); err != nil {
		return err
	}
	if err := w.restoreState(head); err != nil {
		return err
	}
	if w.breach != nil {
		w.breach(w.state.domains)
	}
	w.kernel = w.newKernel()
	dead := process.Orphans(w.state.procs.Alive, w.state.tokens.Holders(), w.state.ledger.Holders(), w.state.boxes.Mailboxes())
	w.drive(func() { w.kernel.Recover(append(dead, w.state.boxes.Abandoned()...)) })
	for more := true; more; {
		more = w.turn() || len(w.beside) > 0
		w.runAll()
		synctest.Wait()
	}
	if w.dead || !w.alive() {
		return nil
	}
	if err := w.oracle.read(w.disk, w.journal.Written()); err != nil {
		return err
	}
	return w.oracle.noneOpen()
}

// verify verifies the journal with its key.
func (w *world) verify() error {
	report, err := journal.Verify(context.Background(), w.disk, journalDir, journal.VerifyOptions{Keys: []string{hostKey.Public()}})
	if err == nil && !report.OK() {
		err = report.Findings[0]
	}
	return err
}

// restart ends the kernel cleanly and starts another one.
func (w *world) restart() {
	w.settle()
	for _, c := range w.clients {
		c.link.end()
	}
	w.settle() // clients read the pushed events until the kernel has closed the connections
	for _, c := range slices.Clone(w.clients) {
		w.leave(c)
	}
	if w.err != nil || !w.alive() {
		return
	}
	w.note("restart")
	if w.r.IntN(2) == 0 {
		w.cut = powerCut{1 + w.r.IntN(12), faultfs.Outcome(w.r.IntN(faultfs.Outcomes))}
	}
	w.open()
	k := w.kernel
	var err error
	w.drive(func() { err = k.Close() })
	w.runAll()
	w.kernel = nil
	err = errors.Join(err, k.SaveSnapshots(), w.journal.Close())
	w.cut.at = 0
	if w.dead {
		w.rise()
		return
	}
	w.fail(err)
	w.toSecond()
	w.boot()
}

// hostKey signs the checkpoints of the journal.
var hostKey = signer(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))

type signer ed25519.PrivateKey

func (k signer) Public() string {
	const kind = "ssh-ed25519"
	blob := append(binary.BigEndian.AppendUint32(nil, uint32(len(kind))), kind...)
	blob = binary.BigEndian.AppendUint32(blob, ed25519.PublicKeySize)
	blob = append(blob, ed25519.PrivateKey(k).Public().(ed25519.PublicKey)...)
	return kind + " " + base64.StdEncoding.EncodeToString(blob)
}

func (k signer) Sign(data []byte) ([]byte, error) {
	return ed25519.Sign(ed25519.PrivateKey(k), data), nil
}

// nextOutside takes a step outside of the kernel: an effect, the disk, the power.
func (w *world) nextOutside() {
	n := w.r.IntN(100)
	switch {
	case n < 40:
		w.finish()
	case n < 52:
		if !w.drops("answer") {
			w.answer()
		}
	case n < 68:
		if !w.drops("ask") {
			w.ask(1)
		}
	case n < 84:
		if !w.drops("cut") {
			w.cut = powerCut{1 + w.r.IntN(1+w.r.IntN(30)), faultfs.Outcome(w.r.IntN(faultfs.Outcomes))}
		}
	case n < 89:
		if w.drops("full disk") {
			return
		}
		w.tell()
		room := int64(w.r.IntN(1000))
		w.note("the disk has room for %d bytes", room)
		w.oracle.faulted = true
		w.disk.Leave(room)
		w.ask(8)
	case n < 93:
		w.disk.Free()
	case n < 95:
		w.store.full = !w.store.full && !w.drops("full store")
	case n < 96:
		if !w.drops("crowd") {
			w.crowd()
		}
	default:
		if !w.drops("restart") {
			w.restart()
		}
	}
}
