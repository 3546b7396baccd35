package ipc

// Rule denies messages: those that fit all that it names. One that names nothing denies all.
type Rule struct {
	Intent      *string
	SenderPID   *int64 // 0 is the operator
	ReceiverPID *int64
}

func (r *Rule) denies(intent string, sender, receiver int64) bool {
	return (r.Intent == nil || *r.Intent == intent) &&
		(r.SenderPID == nil || *r.SenderPID == sender) &&
		(r.ReceiverPID == nil || *r.ReceiverPID == receiver)
}

// denied returns the number of the first rule that denies a message, from 1; 0 where none does.
func (d *Domain) denied(intent string, sender, receiver int64) int {
	for i := range d.rules {
		if d.rules[i].denies(intent, sender, receiver) {
			return i + 1
		}
	}
	return 0
}
