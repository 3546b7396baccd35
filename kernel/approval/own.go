package approval

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Own returns the last question of the kernel's own about what a digest identifies, with its state at a time; false: there is none, or it
// is over.
func (d *Domain) Own(digest string, now int64) (schema.ApprovalState, bool) {
	d.mu.Lock()
	a, ok := d.view.digests.Get(subject(digest, ""))
	d.mu.Unlock()
	if !ok || a.PID != kernel.Operator || a.over(now) {
		return schema.ApprovalState{}, false
	}
	return a.ApprovalState, true
}

// Named returns a question; false: there is none.
func (d *Domain) Named(id string) (schema.ApprovalState, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.view.all.Get(numberOf(id))
	if !ok {
		return schema.ApprovalState{}, false
	}
	return a.ApprovalState, true
}

// Name gives a question of the kernel's own a number. It is recorded unless another one is first.
func (d *Domain) Name(in *schema.ApprovalRequestedInput) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.issued++
	in.ID = nameOf(d.issued)
}

// Granted returns the questions of the kernel's own that name a rule, and are approved and not used at a time.
func (d *Domain) Granted(rule string, now int64) (ids []string) {
	d.mu.Lock()
	all := d.view.all
	d.mu.Unlock()
	all.Scan(func(_ int64, a *Approval) bool {
		if a.PID == kernel.Operator && a.Rule == rule && a.State == schema.ApprovalApproved && a.Until == 0 && !a.over(now) {
			ids = append(ids, a.ID)
		}
		return true
	})
	return ids
}
