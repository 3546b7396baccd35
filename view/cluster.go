package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Cluster formats the state of a kernel in its cluster.
func Cluster(s *schema.ClusterStatusOutput, style Paint) *Table {
	t := new(Table)
	name := Escaped(s.Name)
	if s.Epoch > 1 {
		name += fmt.Sprintf(", epoch %d", s.Epoch)
	}
	t.Row("kernel", name)
	reached := style(Good, "reached")
	if !s.Connected {
		reached = style(Bad, "not reached")
	}
	t.Row("bus", Escaped(s.Bus)+", "+reached)
	copied := fmt.Sprintf("up to entry %d of %d", s.Copied, s.Synced)
	if s.Behind > 0 {
		copied += fmt.Sprintf(", %d behind", s.Behind)
	}
	where := "this kernel's disk"
	if s.Acknowledge == "quorum" {
		where = "the disks of a majority of the bus"
	}
	t.Row("copy", copied+"; a command is answered once it is on "+where)
	for _, key := range s.Standbys {
		t.Row("standby", Escaped(key))
	}
	if s.Lease != "" {
		paint := Good
		if s.Lease == "lost" {
			paint = Bad
		}
		t.Row("lease", style(paint, Escaped(s.Lease)))
	}
	if s.Alarm != "" {
		t.Row("alarm", style(Bad, Escaped(s.Alarm)))
	}
	if s.Trouble != "" {
		t.Row("trouble", Escaped(s.Trouble))
	}
	for _, m := range s.Members {
		may := cmp.Or(strings.Join(m.Allow, ", "), "nothing")
		if m.Role != "" {
			may += "; its operator sees this kernel as " + m.Role
		}
		text := fmt.Sprintf("%s, %s: may call here: %s", Escaped(m.Name), Escaped(m.Key), Escaped(may))
		if m.Queued > 0 {
			text += fmt.Sprintf("; %d messages wait for it", m.Queued)
		}
		if m.Trouble != "" {
			text += "; " + style(Bad, Escaped(m.Trouble))
		}
		t.Row("member", text)
	}
	for _, line := range s.Refused {
		t.Row("refused", Escaped(line))
	}
	return t
}

// ClusterQueue returns the table of the messages that wait for other kernels.
func ClusterQueue(q *schema.ClusterQueueOutput) *Table {
	t := new(Table)
	if len(q.Messages) == 0 {
		t.Row("no message waits for another kernel")
		return t
	}
	t.Row("ID", "FROM", "TO", "BYTES", "SENT", "WAITS")
	for _, m := range q.Messages {
		sent := "no"
		if m.Sent {
			sent = "maybe"
		}
		t.Row(fmt.Sprint(m.MsgID), fmt.Sprint(m.SenderPID), fmt.Sprintf("%d@%s", m.ReceiverPID, Escaped(m.Kernel)), fmt.Sprint(m.Bytes), sent, Escaped(m.Reason))
	}
	if q.More > 0 {
		t.Row("", "", fmt.Sprintf("and %d more", q.More))
	}
	return t
}
