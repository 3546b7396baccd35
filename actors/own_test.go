package actors_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestOwnCall shows that a call of the kernel is handled like others: it is decided, journaled, applied, and answered when
// its entry is on disk.
func TestOwnCall(t *testing.T) {
	t.Parallel()
	states := newRecorders()
	s := startWith(t, states.domains())
	data, err := s.do("", schema.MemorySet.With(&schema.MemorySetInput{Key: "k", Value: schema.Value("1")}))
	if err != nil || string(data) != `1` {
		t.Errorf("got %s, %v", data, err)
	}
	entries := s.entries()
	if len(entries) != 1 || !strings.HasPrefix(entries[0].conn, "kernel-") || entries[0].PID != 0 || entries[0].origin != "https://test.local/" {
		t.Errorf("journaled: %+v", entries)
	}
	if _, err := s.do("https://elsewhere.example/", schema.MemorySet.With(&schema.MemorySetInput{Key: "k", Value: schema.Value("2")})); err != nil {
		t.Error(err)
	}
	if entries := s.entries(); len(entries) != 2 || entries[1].origin != "https://elsewhere.example/" || entries[1].conn == entries[0].conn {
		t.Errorf("journaled: %+v", entries)
	}
}

// TestOwnCallThatFails shows that the kernel gets the error that a client would.
func TestOwnCallThatFails(t *testing.T) {
	t.Parallel()
	states := newRecorders()
	states[schema.Memory].decide = func(*kernel.Call, []string) (kernel.Result, bool, error) {
		return kernel.Result{}, true, fault.ResourceQuota.New("enough")
	}
	s := startWith(t, states.domains())
	_, err := s.do("", schema.MemorySet.With(&schema.MemorySetInput{Key: "k", Value: schema.Value("1")}))
	if shown, ok := errors.AsType[*fault.Fault](err); !ok || shown.Kind != fault.QuotaExceeded || shown.Message != "enough" {
		t.Errorf("got %v", err)
	}
}

// TestOwnCallHangsUp shows that a waiting call of the kernel is cancelled when its context ends, and delays no other.
func TestOwnCallHangsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startMailboxes(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err := s.kernel.Do(ctx, kernel.Own{Request: schema.IPCReceive.With(&schema.ReceiveInput{WaitMS: new(int64(60000))})})
		if waited := time.Since(begun); !errors.Is(err, fault.Unavailable) || waited != time.Second {
			t.Errorf("after %s: %v", waited, err)
		}
		if entries := s.entries(); len(entries) != 1 || entries[0].Type != "Ipc.Receive" {
			t.Errorf("journaled: %+v", entries)
		}
		if _, err := s.kernel.Do(ctx, kernel.Own{Request: schema.IPCReceive.With(&schema.ReceiveInput{WaitMS: new(int64(60000))})}); !errors.Is(err, fault.Unavailable) {
			t.Errorf("after the end of its context: %v", err)
		}
	})
}

// TestOwnCallOfADeadDomain shows that the kernel does not wait for an answer that no actor can send any more.
func TestOwnCallOfADeadDomain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newFake())
		for _, what := range []string{"die", "and again"} {
			if data, err := s.do("", schema.SyscallEcho.With(&schema.EchoInput{Message: what})); !errors.Is(err, fault.KernelInterrupted) {
				t.Errorf("%s: %s, %v", what, data, err)
			}
		}
	})
}

// TestOwnCallEndsItsConnection shows that the command for the end of a call's connection runs after a call of the kernel
// itself, whose connection is that call.
func TestOwnCallEndsItsConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		states[schema.Ipc].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if _, ok := call.Input.(*schema.ReceiveInput); !ok {
				return kernel.Result{}, false, nil
			}
			end := schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{3}})
			return kernel.Result{Data: []byte("[]"), Lasting: &kernel.Lasting{End: &end}}, true, nil
		}
		s := startWith(t, states.domains())
		if _, err := s.do("", schema.IPCReceive.With(&schema.ReceiveInput{})); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if entries := s.entries(); len(entries) != 2 || entries[1].Type != "Capability.Strip" {
			t.Errorf("journaled: %+v", entries)
		}
	})
}

// TestOwnEffect shows that a call for an agent runs its effect when its intent is on disk, and returns the outcome of the effect.
func TestOwnEffect(t *testing.T) {
	t.Parallel()
	host := func(host string) *schema.NetConnectInput { return &schema.NetConnectInput{Host: host, Port: 443} }
	tests := []struct {
		name    string
		host    string
		run     func(context.Context, *kernel.Job) ([]byte, error)
		want    string
		err     error
		entries []string
	}{
		{
			"done", "a.example", func(_ context.Context, job *kernel.Job) ([]byte, error) {
				return schema.AppendString(nil, job.Do.(*schema.NetConnectInput).Host), nil
			}, `"a.example"`, nil, []string{"Net.Connect", "Net.Closed"},
		},
		{
			"failed", "a.example", func(context.Context, *kernel.Job) ([]byte, error) {
				return nil, fault.NotFound
			}, "", fault.Internal, []string{"Net.Connect", "Net.Closed"},
		},
		{
			"given up", "a.example", func(ctx context.Context, _ *kernel.Job) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}, "", fault.Unavailable, []string{"Net.Connect", "Net.Closed"},
		},
		{"no such data", strings.Repeat("x", 300), nil, "", fault.InvalidInput, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := startWith(t, map[schema.Domain]kernel.Domain{schema.Net: connects{}})
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				var before []string
				answer, err := s.kernel.Do(ctx, kernel.Own{
					Caller: kernel.Caller{PID: 7, Kernel: true, Via: "channel"}, Request: schema.NetConnect.With(host(test.host)),
					Run: func(ctx context.Context, job *kernel.Job) ([]byte, error) {
						before = s.types()
						return test.run(ctx, job)
					},
				})
				if string(answer.Data) != test.want || !errors.Is(err, test.err) {
					t.Errorf("got %s, %v", answer.Data, err)
				}
				if got := s.types(); !slices.Equal(got, test.entries) || !slices.Equal(before, test.entries[:min(1, len(got))]) {
					t.Errorf("journaled: %v, before the effect %v", got, before)
				}
				for _, e := range s.entries() {
					if !strings.HasPrefix(e.conn, "net-") {
						t.Errorf("journaled on %s", e.conn)
					}
				}
			})
		})
	}
}

// connects is a domain whose calls are effects.
type connects struct{ kernel.Stateless }

func (connects) Decide(call *kernel.Call) (kernel.Result, error) {
	if end, ok := call.Input.(*schema.EffectEnd); ok {
		data, err := kernel.End(call, end)
		return kernel.Result{Data: data}, err
	}
	return begin(call.Input), nil
}

func (connects) Apply(*kernel.Call) {}

// types returns the types of the journal's entries.
func (s *system) types() (types []string) {
	for _, e := range s.entries() {
		types = append(types, e.Type)
	}
	return types
}

// TestNote shows that the entry of a note precedes those of later calls, and belongs to the kernel.
func TestNote(t *testing.T) {
	t.Parallel()
	s := startWith(t, newRecorders().domains())
	s.kernel.Note(schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{3}}))
	if _, err := s.do("", schema.CapabilityGrant.With(&schema.GrantInput{PID: 1, AllowedSyscalls: []string{"*"}})); err != nil {
		t.Fatal(err)
	}
	entries := s.entries()
	if len(entries) != 2 || entries[0].Type != "Capability.Strip" || entries[0].conn != "kernel" || entries[1].Type != "Capability.Grant" {
		t.Errorf("journaled: %+v", entries)
	}
}

// TestNoteOnAFullDisk shows that notes cost a kernel nothing while its disk is full, since any failed login causes one.
func TestNoteOnAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startWith(t, states.domains())
		c := s.connect()
		s.room.full(syscall.ENOSPC)
		c.send(set("a", "x"))
		expect(t, c, "a 503")
		made := 0
		s.restoring = func(schema.Domain) { made++ }
		note := schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{3}})
		for range 3 {
			s.kernel.Note(note)
			synctest.Wait()
		}
		if made != 0 {
			t.Errorf("states were rebuilt %d times", made)
		}
		s.room.free()
		c.send(get("b")) // finds out that there is room
		expect(t, c, `b ""`)
		s.kernel.Note(note)
		synctest.Wait()
		if entries := s.entries(); len(entries) != 2 || entries[1].Type != "Capability.Strip" {
			t.Errorf("journaled: %+v", entries)
		}
		checkReplay(t, s, states)
	})
}
