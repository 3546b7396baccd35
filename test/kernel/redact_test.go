package kernel_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// secrets are the values of a random history that will be redacted, each in one or more commands.
type secrets struct {
	chance *rand.Rand
	made   []string
}

// value returns JSON with a new secret in it.
func (s *secrets) value() string {
	word := fmt.Sprintf("hush%05dz", len(s.made))
	s.made = append(s.made, word)
	switch s.chance.IntN(4) {
	case 0:
		return fmt.Sprintf(`{"a":[1,{"b/c~":"my %s is ä"}],"d":true}`, word)
	case 1:
		return fmt.Sprintf(`["%s",%q]`, word, word+"\n<&>")
	case 2:
		return fmt.Sprintf(`"%s"`, strings.Repeat(word+" ", 1+s.chance.IntN(50)))
	}
	return fmt.Sprintf("%q", word)
}

// text is value as a string.
func (s *secrets) text() string {
	s.made = append(s.made, fmt.Sprintf("hush%05dz", len(s.made)))
	return fmt.Sprintf("%q", "the "+s.made[len(s.made)-1])
}

// keepSecret makes one random command with a secret in it, which may fail.
func (c *client) keepSecret(s *secrets, pids []int64) []int64 {
	pid, other, n := pids[s.chance.IntN(len(pids))], pids[s.chance.IntN(len(pids))], s.chance.IntN(5)
	switch s.chance.IntN(10) {
	case 0, 1:
		c.ask("Memory.Set", fmt.Sprintf(`{"key":"k/%d","value":%s}`, n, s.value()))
	case 2:
		c.ask("Memory.CompareAndSet", fmt.Sprintf(`{"key":"new/%d","value":%s}`, len(s.made), s.value()))
	case 3:
		c.ask("Syscall.SendMsg", fmt.Sprintf(`{"pid":%d,"receiver_pid":%d,"payload":%s}`, pid, other, s.value()))
	case 4:
		c.ask("Ipc.Broadcast", fmt.Sprintf(`{"payload":%s,"intent":%s}`, s.value(), s.text()))
	case 5:
		c.ask("Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"changes":{"k%d":%s}}`, pid, n, s.value()))
	case 6:
		c.askWith("Syscall.Echo", fmt.Sprintf(`{"message":%s}`, s.text()), fmt.Sprintf(`,"idempotencyKey":"key-%d"`, len(s.made)))
	case 7:
		c.ask("Job.Start", fmt.Sprintf(`{"name":"Memory.Set","payload":{"key":"x","value":%s},"at":4102444800000}`, s.value()))
	case 8:
		if a := c.ask("Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"b-%d","intent":%s,"role":%s}`, pid, len(s.made), s.text(), s.text())); a.Kind == "reply" {
			return append(pids, int64(len(pids)+1))
		}
	default:
		c.use(schema.OsMessage, "Sum.Add", fmt.Sprintf(`{"n":%s}`, s.value())) // an effect, with the argument in its answer
	}
	return pids
}

// where returns the smallest members of an entry that contain a word, as JSON pointers.
func where(line []byte, word string) (found []string) {
	var entry struct {
		Request, Outcome struct{ Data any }
	}
	if !bytes.Contains(line, []byte(word)) || json.Unmarshal(line, &entry) != nil {
		return nil
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				walk(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), member)
			}
		case []any:
			for i, member := range v {
				walk(fmt.Sprint(at, "/", i), member)
			}
		case string:
			if strings.Contains(v, word) {
				found = append(found, at)
			}
		}
	}
	walk("/request/data", entry.Request.Data)
	walk("/outcome/data", entry.Outcome.Data)
	slices.Sort(found)
	return found
}

// entries calls each with the entries of a journal, as they are on disk.
func entries(t testing.TB, dir string, each func(*journal.Record)) {
	t.Helper()
	r := journal.NewReader(nil, filepath.Join(dir, "journal"), journal.ReaderOptions{})
	defer func() { testkit.Must(t, r.Close()) }()
	for {
		record, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return
		}
		testkit.Must(t, err)
		each(record)
	}
}

// silence redacts a word in every entry that has it, or the value around it if the word itself cannot be redacted.
func silence(t testing.TB, dir, word string, redact func(seq uint64, member string) (schema.AuditRedactOutput, error)) (n int) {
	t.Helper()
	for ; ; n++ {
		var at uint64
		var member string
		entries(t, dir, func(r *journal.Record) {
			if found := where(r.Line, word); found != nil && at == 0 {
				at, member = r.Seq, found[0]
			}
		})
		if at == 0 {
			return n
		}
		out, err := redact(at, member)
		for ; err != nil; out, err = redact(at, member) {
			if member = member[:strings.LastIndexByte(member, '/')]; strings.Count(member, "/") < 3 {
				t.Fatalf("entry %d keeps %q: %v", at, word, err)
			}
		}
		if out.Already || out.By <= int64(at) || len(out.Left) > 0 {
			t.Fatalf("%+v", out)
		}
	}
}

// silence redacts by calls of Audit.Redact.
func (c *client) silence(dir, word string) (n int) {
	c.t.Helper()
	return silence(c.t, dir, word, func(seq uint64, member string) (out schema.AuditRedactOutput, err error) {
		a := c.ask("Audit.Redact", fmt.Sprintf(`{"seq":%d,"member":%q}`, seq, member))
		if a.Kind != "reply" {
			return out, errors.New(string(a.Data))
		}
		return out, json.Unmarshal(a.Data, &out)
	})
}

// silence redacts as pwos audit redact does if no kernel runs.
func (d *running) silence(t testing.TB, word string) (n int) {
	t.Helper()
	home := t.TempDir()
	getenv := func(name string) string {
		return map[string]string{"PWOS_STATE_DIR": d.cfg.StateDir, "PWOS_RUNTIME_DIR": d.cfg.RuntimeDir, "HOME": home}[name]
	}
	return silence(t, d.cfg.StateDir, word, func(seq uint64, member string) (schema.AuditRedactOutput, error) {
		return offline.Redact(t.Context(), nil, getenv, io.Discard, seq, member)
	})
}

// shown returns a kernel's answers about its past and present.
func (c *client) shown() (all []string) {
	c.t.Helper()
	var log schema.AuditLogOutput
	for since := int64(0); ; since = log.Next {
		log = schema.AuditLogOutput{}
		a := c.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":1000,"request":true}`, since), &log)
		all = append(all, string(a.Data))
		for _, e := range log.Entries {
			if e.Seq%19 == 0 {
				all = append(all, string(c.ask("Audit.Show", fmt.Sprintf(`{"seq":%d}`, e.Seq)).Data))
			}
			if e.Seq%31 == 0 {
				all = append(all, string(c.ask("Message.Replay", fmt.Sprintf(`{"until_seq":%d,"key":"k/%d"}`, e.Seq, e.Seq%5)).Data))
			}
		}
		if log.Next == 0 {
			break
		}
	}
	return append(all, string(c.ask("Event.Search", `{"query":"hush*","limit":100}`).Data))
}

// TestRedactLive redacts random secrets in random histories of a running kernel, which continues. Afterwards no file and no
// answer has them, verification succeeds, and the kernel's answers are those of one with only the journal.
func TestRedactLive(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testkit.Rounds(1, 1, 60)) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			d := start(t, func(c *config.Config) { c.Journal.SnapshotEvery = 10 })
			c, provider := d.dial(t), d.dial(t)
			echo := func(r asked) string { return `"data":` + string(r.Data) }
			provider.provide("Sum.Add", echo)
			pids := []int64{c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":3}}`)}
			s := &secrets{chance: rand.New(rand.NewPCG(seed, 7))}
			for range 3 {
				for range 25 {
					pids = c.scramble(s.chance, pids)
					pids = c.keepSecret(s, pids)
				}
				kept := len(s.made)
				gone := []string{s.made[s.chance.IntN(kept)], s.made[kept-1], s.made[s.chance.IntN(kept)]}
				for _, word := range gone {
					before := c.everything(pids)
					c.silence(d.cfg.StateDir, word)
					if found := testkit.FilesWith(t, word, d.cfg.StateDir, d.cfg.RuntimeDir); found != nil {
						t.Errorf("%s is in %q", word, found)
					}
					if diff := cmp.Diff(without(before, word), without(c.everything(pids), word)); diff != "" {
						t.Errorf("what else has changed (-before +after):\n%s", diff)
					}
				}
				for _, text := range c.shown() {
					for _, word := range gone {
						if strings.Contains(text, word) {
							t.Errorf("%s is shown: %.300s", word, text)
						}
					}
				}
				var out schema.AuditVerifyOutput
				if c.call("Audit.Verify", `{}`, &out); !out.OK {
					t.Errorf("the journal is %+v", out)
				}
				live := c.everything(pids)
				whole := s.chance.IntN(2) == 0
				last, removed := s.made[s.chance.IntN(kept)], 0
				d.restartAfter(t, func() {
					removed = d.silence(t, last)
					gone = append(gone, last)
					if whole {
						testkit.Must(t, os.RemoveAll(filepath.Join(d.cfg.StateDir, "projections")))
					}
					for _, word := range gone {
						if found := testkit.FilesWith(t, word, d.cfg.StateDir, d.cfg.RuntimeDir); found != nil {
							t.Errorf("once the kernel has ended, %s is in %q", word, found)
						}
					}
				})
				c, provider = d.dial(t), d.dial(t)
				provider.provide("Sum.Add", echo)
				after := c.everything(pids)
				for i, text := range live {
					if strings.Contains(text, last) || removed > 0 && strings.Contains(text, "meminfo") { // which has the size of all values
						live[i], after[i] = "", ""
					}
				}
				if diff := cmp.Diff(live, after); diff != "" {
					t.Errorf("before and after a restart, without snapshots %v (-before +after):\n%s", whole, diff)
				}
				for _, pid := range pids {
					a := c.ask("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":2}`, pid))
					for _, word := range gone {
						if bytes.Contains(a.Data, []byte(word)) {
							t.Errorf("%s is in the mail of %d", word, pid)
						}
					}
				}
			}
		})
	}
}

// without omits the answers that contain a word, or say that something was redacted.
func without(all []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(text string) bool {
		return strings.Contains(text, word) || strings.Contains(text, "[redacted]") || strings.HasPrefix(text, "Memory.Get") && strings.Contains(text, "meminfo")
	})
}

// TestRedactRepeated: a call that is repeated with its idempotency key is answered from its redacted entry, by the kernel
// that has redacted it and by the next one; for both, the call with the secret is a different one.
func TestRedactRepeated(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	said := c.askWith("Syscall.Echo", `{"message":"hush00000z"}`, `,"idempotencyKey":"k"`)
	if n := c.silence(d.cfg.StateDir, "hush00000z"); n != 2 || said.Kind != "reply" {
		t.Fatalf("%d members were removed", n)
	}
	for range 2 {
		again := c.askWith("Syscall.Echo", `{"message":"[redacted]"}`, `,"idempotencyKey":"k"`)
		if string(again.Data) != `{"echo":"[redacted]"}` {
			t.Errorf("the call that was redacted is answered %s", again.Data)
		}
		other := c.askWith("Syscall.Echo", `{"message":"hush"}`, `,"idempotencyKey":"k"`)
		if !strings.Contains(string(other.Data), "was used for another message") {
			t.Errorf("another call is answered %s", other.Data)
		}
		d.restart(t)
		c = d.dial(t)
	}
}

// TestRedactBesideWork: while entries are redacted, calls of the same domain are answered, and a subscriber of the audit
// log gets each entry once.
func TestRedactBesideWork(t *testing.T) {
	t.Parallel()
	d := start(t, func(c *config.Config) { c.Journal.SnapshotEvery = 20 })
	c, worker, follower := d.dial(t), d.dial(t), d.dial(t)
	for n := range 6 {
		c.call("Memory.Set", fmt.Sprintf(`{"key":"k/%d","value":"hush%05dz"}`, n, n), nil)
	}
	follower.call("Audit.Subscribe", `{"since_seq":1}`, nil)
	done, ended := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { ended <- n }()
		for {
			select {
			case <-done:
				return
			default:
			}
			n++
			if a := worker.ask("Memory.Set", fmt.Sprintf(`{"key":"own","value":%d}`, n)); a.Kind != "reply" {
				t.Errorf("set %d: %s", n, a.Data)
				return
			}
			if a := worker.ask("Memory.Get", `{"key":"own"}`); string(a.Data) != fmt.Sprint(n) {
				t.Errorf("after set %d: %s", n, a.Data)
				return
			}
		}
	}()
	for n := range 6 {
		word := fmt.Sprintf("hush%05dz", n)
		if c.silence(d.cfg.StateDir, word) != 1 {
			t.Errorf("%s was not removed", word)
		}
		if a := c.ask("Memory.Get", fmt.Sprintf(`{"key":"k/%d"}`, n)); string(a.Data) != `"[redacted]"` {
			t.Errorf("after that: %s", a.Data)
		}
	}
	close(done)
	if n := <-ended; n == 0 {
		t.Error("no call was answered during the redaction")
	}
	last := c.ask("Memory.Get", `{"key":"own"}`).Metadata.Kernel.Seq
	seen := map[int64]bool{}
	for latest := int64(0); latest < last; {
		var e schema.AuditEntry
		testkit.Must(t, json.Unmarshal(follower.event(schema.OsMessage, schema.AuditRecorded).Data, &e))
		if e.Seq <= latest || seen[e.Seq] {
			t.Fatalf("entry %d comes after %d", e.Seq, latest)
		}
		latest, seen[e.Seq] = e.Seq, true
	}
	d.restart(t)
	if a := d.dial(t).ask("Memory.Get", `{"key":"k/0"}`); string(a.Data) != `"[redacted]"` {
		t.Errorf("after a restart: %s", a.Data)
	}
}

// TestRedactAtOnce: of concurrent redactions of the same member, one succeeds.
func TestRedactAtOnce(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	seq := c.call("Memory.Set", `{"key":"k","value":["hush00000z"]}`, nil).Metadata.Kernel.Seq
	var clients []*client
	for range 5 {
		clients = append(clients, d.dial(t))
		clients[len(clients)-1].send("Audit.Redact", fmt.Sprintf(`{"seq":%d,"member":"/request/data/value"}`, seq), "")
	}
	done := 0
	for _, c := range clients {
		var out schema.AuditRedactOutput
		a := c.next()
		testkit.Must(t, json.Unmarshal(a.Data, &out))
		if a.Kind != "reply" || out.Already != (out.By == 0) {
			t.Errorf("got %s", a.Data)
		}
		if !out.Already {
			done++
		}
	}
	if done != 1 {
		t.Errorf("the member was redacted %d times", done)
	}
	for member, want := range map[string]string{"/request/data/value/0": "has no member", "/request": "only what is below", "value": "must be a JSON pointer", "/request/data/value/" + strings.Repeat("x", 2000): "the pointer is longer than"} {
		c.refused(map[bool]int{true: 404, false: 422}[member == "/request/data/value/0"], "Audit.Redact", fmt.Sprintf(`{"seq":%d,"member":%q}`, seq, member), want)
	}
}

// TestRedactBlobs: a value that was passed by reference is in no blob any more; a blob that has more than the value is
// reported.
func TestRedactBlobs(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, provider := d.dial(t), d.dial(t)
	long := strings.Repeat("hush00000z ", 4000)
	c.call("Memory.Set", fmt.Sprintf(`{"key":"k","valueRef":%s}`, d.blob(t, "long.txt", long)), nil)
	c.call("Memory.Get", `{"key":"k"}`, nil) // its answer is a blob
	d.blob(t, "letter.txt", "it is: "+long)
	d.blob(t, "other.txt", "nothing of it")
	var set uint64
	entries(t, d.cfg.StateDir, func(r *journal.Record) {
		if bytes.Contains(r.Request, []byte("Memory.Set")) {
			set = r.Seq
		}
	})
	var out schema.AuditRedactOutput
	c.call("Audit.Redact", fmt.Sprintf(`{"seq":%d,"member":"/request/data/value"}`, set), &out)
	letter := filepath.Join(d.cfg.RuntimeDir, "blobs", "letter.txt")
	if out.Blobs != 2 || !slices.Equal(out.Left, []string{letter}) {
		t.Errorf("got %+v", out)
	}
	if found := testkit.FilesWith(t, "hush00000z", d.cfg.StateDir, d.cfg.RuntimeDir); !slices.Equal(found, []string{letter}) {
		t.Errorf("the value is in %q", found)
	}
	testkit.Must(t, os.Remove(letter))

	// The answer of an effect, of which the journal has only the reference and a digest.
	long = strings.Repeat(long, 40)
	provider.call("Syscall.Register", registering("Sum.Add", ""), nil)
	c.write(`{"kind":"query","type":"Sum.Add","data":{},"metadata":{"id":"long","timestamp":1}}` + "\n")
	r := provider.request(schema.OsMessage)
	ref := d.blob(t, "answer.json", `"`+long+`"`)
	provider.call("Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"dataRef":%s}`, r.CallID, ref), nil)
	if a := c.next(); a.Kind != "reply" {
		t.Fatalf("answered %s", a.Data)
	}
	var at uint64
	var member string
	entries(t, d.cfg.StateDir, func(r *journal.Record) {
		for _, found := range where(r.Line, "/blobs/") {
			if start, end, ok := journal.Member(r.Line, found); ok && strings.HasSuffix(found, "/path") && !bytes.Contains(r.Line[start:end], []byte("answer.json")) {
				at, member = r.Seq, strings.TrimSuffix(found, "/path")
			}
		}
	})
	testkit.Must(t, os.Remove(filepath.Join(d.cfg.RuntimeDir, "blobs", "answer.json")))
	for n := range 2 {
		out = schema.AuditRedactOutput{}
		c.call("Audit.Redact", fmt.Sprintf(`{"seq":%d,"member":%q}`, at, member), &out)
		if out.By != 0 || out.Already != (n == 1) || out.Blobs != int64(1-n) {
			t.Errorf("time %d: %+v", n, out)
		}
	}
	if found := testkit.FilesWith(t, "hush00000z", d.cfg.StateDir, d.cfg.RuntimeDir); found != nil {
		t.Errorf("the value is in %q", found)
	}
}

// TestRedactOffline: if no kernel runs, pwos audit redact does it itself.
func TestRedactOffline(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.call("Memory.Set", `{"key":"k","value":"hush00000z"}`, nil)
	d.restartAfter(t, func() {
		if n := d.silence(t, "hush00000z"); n != 1 || testkit.FilesWith(t, "hush00000z", d.cfg.StateDir) != nil {
			t.Errorf("%d members were removed", n)
		}
	})
	if a := d.dial(t).ask("Memory.Get", `{"key":"k"}`); string(a.Data) != `"[redacted]"` {
		t.Errorf("after that: %s", a.Data)
	}
}
