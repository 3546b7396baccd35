package export

import "github.com/promptware-os/pwos/schema"

// Check compares a journal with those epochs, which ends at head, with a position. next is the entry to begin with
// after a restore; 0: there was none.
func Check(instance string, epochs []schema.Epoch, head int64, after Position) (next int64, err error) {
	f := feed{instance: instance, epochs: epochs, last: head}
	err = f.check(after, after.Seq+1)
	if a, ok := err.(restoredError); ok {
		return a.from, nil
	}
	return 0, err
}

// FactsOf is factsOf.
func FactsOf(e *schema.AuditEntry) Facts { return factsOf(e) }
