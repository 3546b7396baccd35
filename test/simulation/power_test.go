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

// powerCut is one that comes before an operation of the disk, in the middle of whatever does it.
type powerCut struct {
	at  int // operations that change the disk until then; 0: none is to come
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

// blackout cuts the power: what was said until now counts, what the kernel does from now on is lost. It goes on until rise.
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

// rise starts again on what a blackout has left.
func (w *world) rise() {
	w.shut()
	w.found()
	w.boot()
}

// stop has a kernel that ends do so, and starts the next one on the same disk, which knows what it has not written.
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

// found puts what a blackout has left in place of what there was.
func (w *world) found() {
	w.toSecond()
	w.disk, w.store, w.dead = w.left, w.kept, false
	w.effects.forget()
}

// toSecond waits for a full second: how long the end of a life takes depends on its goroutines.
func (w *world) toSecond() {
	now := time.Now()
	time.Sleep(now.Truncate(time.Second).Add(time.Second).Sub(now))
}

// open lets every sync go on, one after the other, and those that come.
func (w *world) open() {
	for len(w.gate.Held()) > 0 {
		w.gate.Complete(0)
		synctest.Wait()
	}
	w.gate.Open()
}

// boot starts kernels until one has come up.
func (w *world) boot() {
	for !w.start() && w.err == nil {
		w.toSecond()
	}
}

// start starts a kernel on what the disk holds. It returns false if the power went meanwhile, or the disk failed.
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

// life opens the journal, makes the state of it and starts a kernel.
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

// verify has the journal verified, with the key that it was signed with.
func (w *world) verify() error {
	report, err := journal.Verify(context.Background(), w.disk, journalDir, journal.VerifyOptions{Keys: []string{hostKey.Public()}})
	if err == nil && !report.OK() {
		err = report.Findings[0]
	}
	return err
}

// restart ends the kernel cleanly, and starts the next one.
func (w *world) restart() {
	w.settle()
	for _, c := range w.clients {
		c.link.end()
	}
	w.settle() // they read what they are pushed until the kernel has done with them
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

// hostKey signs the journal.
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

// nextOutside takes a step of what lies outside the kernel: effects, the disk, the power.
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
