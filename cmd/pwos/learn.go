package main

import (
	"context"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// lesson is what the journal tells of what a process and its descendants did.
type lesson struct {
	calls  map[string]int     // calls that need a grant, by type, whatever came of them
	beyond map[string]int     // calls that no grant allows, by type
	peaks  map[string]float64 // most units that one of them held, by resource
	agents int                // the first one and all that were spawned
}

func newLesson() *lesson {
	return &lesson{calls: map[string]int{}, beyond: map[string]int{}, peaks: map[string]float64{}}
}

// learnFrom reads the calls of a process and of all that it spawned. What a spawner grants is bounded by what it holds, for
// each child by itself and not for their sum: so the first one needs every type that any of them called, and of each
// resource as much as the one that held most.
func learnFrom(ctx context.Context, c *client.Client, pid int64) (*lesson, error) {
	l := newLesson()
	for next := []int64{pid}; len(next) > 0; next = next[1:] {
		l.agents++
		err := eachEntry(ctx, c, schema.AuditLogInput{PID: &next[0]}, func(e *schema.AuditEntry) {
			if child := l.note(e); child != 0 {
				next = append(next, child)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// note takes a call into account, and returns the PID of the process that it spawned, or 0.
func (l *lesson) note(e *schema.AuditEntry) (child int64) {
	row, ok := schema.Lookup(e.Type)
	if !ok || row.Internal || row.Grant == schema.Everyone {
		return 0
	}
	if row.Grant == schema.OperatorOnly {
		l.beyond[e.Type]++
		return 0
	}
	l.calls[e.Type]++
	if !e.Success {
		return 0
	}
	switch e.Type {
	case "Syscall.Spawn":
		out, _ := valueOf[schema.SpawnOutput](e.Payload)
		return out.ChildPID
	case "Syscall.Alloc":
		out, _ := valueOf[schema.AllocOutput](e.Payload)
		l.peaks[out.ResourceID] = max(l.peaks[out.ResourceID], out.Reserved)
	}
	return 0
}

// denied returns the calls that a grant of these patterns refuses, by type.
func (l *lesson) denied(allow []string) map[string]int {
	denied := make(map[string]int)
	for typ, n := range l.calls {
		if row, ok := schema.Lookup(typ); ok && !allows(allow, row) {
			denied[typ] = n
		}
	}
	return denied
}

// allows reports whether one of the patterns of a grant names the syscall (PROTOCOL 5).
func allows(patterns []string, row *schema.Syscall) bool {
	domain, _, _ := strings.Cut(row.Type, ".")
	return slices.ContainsFunc(patterns, func(p string) bool {
		return p == "*" || p == row.Type || row.Code != "" && p == row.Code || p == domain+".*"
	})
}

// eachEntry calls do with every entry of the log that in asks for, from the first one on.
func eachEntry(ctx context.Context, c *client.Client, in schema.AuditLogInput, do func(*schema.AuditEntry)) error {
	limit := int64(listPage)
	in.Limit = &limit
	for {
		page, err := auditPage(ctx, c, schema.Metadata{}, &in)
		if err != nil {
			return err
		}
		for i := range page.entries {
			do(&page.entries[i].AuditEntry)
		}
		if page.next == 0 {
			return nil
		}
		in.SinceSeq = &page.next
	}
}
