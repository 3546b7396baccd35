package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Digest is the SHA-256, in hex, of caller, type and data, the data in the form of RFC 8785.
func Digest(caller int64, typ string, data []byte) string {
	text := append([]byte(`{"caller":`), strconv.FormatInt(caller, 10)...)
	text = append(append(text, `,"data":`...), data...)
	text = append(schema.AppendString(append(text, `,"type":`...), typ), '}')
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// subject identifies a question: a digest, and the kind of budget that the call exceeds, which makes it another
// question.
func subject(digest, exhausted string) string { return digest + exhausted }

func (a *Approval) subject() string { return subject(a.Digest, a.Exhausted) }

// Stage is the Approval stage of a kernel's gate. It is safe for concurrent use.
func (d *Domain) Stage(call *kernel.Call) kernel.Verdict {
	if call.Approval != nil && call.Approval.Used {
		return kernel.Verdict{}
	}
	call.Approval = nil
	q := call.Inquiry
	if q == nil {
		return kernel.Verdict{}
	}
	shell := d.shell.Load()
	if shell == nil {
		return kernel.Deny(call.CannotAsk())
	}
	if shell.Repeats(call) {
		return kernel.Verdict{}
	}
	digest := Digest(call.PID, call.Message.Called(), q.Data)
	about := subject(digest, q.Exhausted)
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.view.digests.Get(about)
	if !ok || a.over(call.Time) {
		if a = d.asked[about]; a == nil && call.Probe != nil {
			call.Probe.Why("a rule requires an approval, which was not asked for yet")
			return kernel.Pend("", 0)
		}
		if a == nil {
			raised, err := d.raise(call, digest, shell)
			if err != nil {
				return kernel.Deny(call.Asked(err))
			}
			a = raised
		}
	}
	switch a.State {
	case schema.ApprovalApproved:
		call.Probe.Why("it is approved: " + a.ID)
		call.Approval = &kernel.Approval{ID: a.ID, Rule: q.Rule, Policy: q.Policy, Exhausted: q.Exhausted, Advisory: a.Advisory}
		if a.Until == 0 {
			use := schema.ApprovalUse.With(&schema.ApprovalUseInput{ID: a.ID})
			call.Approval.Use = &use
		}
		return kernel.Verdict{}
	case schema.ApprovalRefused:
		f := fault.ApprovalRefused.New("%s was refused", call.Message.Called())
		if a.Why != "" {
			f.Message += ": " + a.Why
		}
		if q.Fix != "" {
			f = f.WithFix("%s", q.Fix)
		}
		return kernel.Deny(call.Asked(f.With("approval", a.ID)))
	}
	call.Probe.Why("it waits for the approval " + a.ID)
	return kernel.Pend(a.ID, min(shell.Wait, time.Duration(a.Expires-call.Time)*time.Millisecond))
}

// raise asks a new question about a call, unless there are too many.
func (d *Domain) raise(call *kernel.Call, digest string, shell *Shell) (*Approval, *fault.Fault) {
	data := call.Syscall.Input().Redact(call.Message.Data, call.Input, false)
	if len(data) > MaxData {
		return nil, fault.ApprovalTooMany.New("the data of this %s are too long to be asked about: they may have %d bytes", call.Message.Called(), MaxData).
			WithFix("make it in parts, or have the operator make it")
	}
	each, all := 0, len(d.asked)
	kept := all // including those of ended processes
	for _, a := range d.asked {
		if a.PID == call.PID {
			each++
		}
	}
	d.view.all.Scan(func(_ int64, a *Approval) bool {
		if !a.over(call.Time) {
			kept++
		}
		if !d.over(a, call.Time) {
			if all++; a.PID == call.PID {
				each++
			}
		}
		return true
	})
	switch {
	case each >= MaxEach:
		return nil, fault.ApprovalTooMany.New("%d questions about calls of pid %d are open, which is the limit", each, call.PID).
			WithFix("wait until some are answered or expire")
	case all >= MaxAll || kept >= maxKept:
		return nil, fault.ApprovalTooMany.New("%d questions are open, which is the limit", all).
			WithFix("wait until some are answered or expire")
	}
	a := &Approval{Number: d.issued + 1}
	a.ID, a.Rule, a.Policy, a.Digest = nameOf(a.Number), call.Inquiry.Rule, call.Inquiry.Policy, digest
	a.Exhausted = call.Inquiry.Exhausted
	a.PID, a.Origin, a.Type, a.Data = call.PID, call.Origin, call.Message.Called(), schema.Value(string(data))
	if p := d.processes.Process(call.PID); p != nil {
		a.Agent = p.AgentID
	}
	a.State, a.Asked, a.Expires = schema.ApprovalWaiting, call.Time, call.Time+call.Inquiry.Stands.Milliseconds()
	if !shell.Ask(call, schema.ApprovalRequested.With(&a.ApprovalRequestedInput)) {
		return nil, fault.JournalUnavailable.New("the journal cannot be written, so no question was raised and nothing was done; try again once its disk has room")
	}
	d.issued = a.Number
	d.asked[a.subject()] = a
	return a, nil
}
