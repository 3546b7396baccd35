package capability_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTokenWithoutAny(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	r.Publish()
	for _, pid := range []int64{-1, 0, 1, 1 << 52} {
		if got := r.Token(pid); got != nil {
			t.Errorf("%d has %v", pid, got)
		}
	}
}

// TestPublish: a change shows when it is published, not before; other processes keep their token.
func TestPublish(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	const neighbour = 1 + 1024 // shares a map with pid 1
	endow(t, r, "", 1, neighbour)
	if r.Token(1) != nil {
		t.Error("a grant is visible before it is published")
	}
	r.Publish()
	if r.Token(1) == nil || r.Token(neighbour) == nil {
		t.Error("a published grant is not visible")
	}
	kept := r.Token(neighbour)
	must(t, r, operator, "Capability.Revoke", `{"pid":1}`, `{"pid":1,"revoked":true}`)
	if r.Token(1) == nil {
		t.Error("a revocation is visible before it is published")
	}
	must(t, r, operator, "Capability.Revoke", `{"pid":1}`, `{"pid":1,"revoked":false}`) // Decide sees it at once
	r.Publish()
	if r.Token(1) != nil {
		t.Error("a published revocation is not visible")
	}
	if r.Token(neighbour) != kept {
		t.Error("the token of another process has changed")
	}
}

// TestViewGrows: any number of tokens is found, before and after the map grows.
func TestViewGrows(t *testing.T) {
	t.Parallel()
	const most = 5000
	r := newRegistry()
	for pid := int64(1); pid <= most; pid++ {
		r.Apply(endowed(t, pid))
		if pid%97 == 0 || pid == most {
			r.Publish()
			for seen := int64(0); seen <= pid+1; seen++ {
				if got := r.Token(seen); (got != nil) != (seen >= 1 && seen <= pid) || (got != nil && got.PID() != seen) {
					t.Fatalf("with %d tokens, %d has %v", pid, seen, got)
				}
			}
		}
	}
}

// TestRevokedIsGone: many readers, one writer: after Publish, no reader sees a token that was revoked or replaced
// before it, nor another process's.
func TestRevokedIsGone(t *testing.T) {
	t.Parallel()
	const rounds, readers, pid = 300, 4, 7
	r := newRegistry()
	var least atomic.Int64 // the tokens of earlier rounds are gone
	var done atomic.Bool
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for !done.Load() {
				from := least.Load()
				if got := r.Token(pid); got != nil && (got.PID() != pid || *got.Granted.ExpiresAtTick < from) {
					t.Errorf("round %d has ended, and %v is still visible", from, got)
					return
				}
			}
		})
	}
	for round := int64(1); round <= rounds; round++ {
		endow(t, r, fmt.Sprint(round), pid, pid+1024)
		r.Publish()
		least.Store(round)
		if round%3 == 0 {
			must(t, r, operator, "Capability.Strip", `{"pids":[7]}`, `{"success":true}`)
			r.Publish()
			least.Store(round + 1)
		}
	}
	done.Store(true)
	wg.Wait()
}

func BenchmarkToken(b *testing.B) {
	const n = 10_000
	r := filled(b, n)
	r.Publish()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pid := int64(1); pb.Next(); pid = pid*7919%n + 1 {
			if r.Token(pid) == nil {
				b.Fatal("no token")
			}
		}
	})
}

// BenchmarkGrant measures a grant from the request to the view.
func BenchmarkGrant(b *testing.B) {
	for _, n := range []int64{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := filled(b, n)
			r.Publish()
			call := request(b, operator, "Capability.Endow", `{"pid":1,"allowed_syscalls":["Memory.*","SYS_ALLOC"],"resource_quotas":{"gpu":1}}`)
			b.ReportAllocs()
			for b.Loop() {
				result, err := r.Decide(call)
				if err != nil {
					b.Fatal(err)
				}
				call.Data = result.Data
				r.Apply(call)
				r.Publish()
			}
		})
	}
}

// BenchmarkSnapshot measures how long the domain is stopped, without the writing.
func BenchmarkSnapshot(b *testing.B) {
	r := filled(b, 10_000)
	for b.Loop() {
		r.Snapshot()
	}
}

func BenchmarkRestore(b *testing.B) {
	from := filled(b, 10_000)
	for b.Loop() {
		r := newRegistry()
		if err := from.Snapshot()(r.Restore); err != nil {
			b.Fatal(err)
		}
		r.Publish()
	}
}
