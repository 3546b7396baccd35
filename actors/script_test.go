package actors_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
)

// TestScripts runs the files of testdata, in fake time. Each line after "run" is a step; what a few steps show is compared with
// what follows "----", and replaces it with -rewrite. Each step ends when all goroutines wait, and shows the answers that have
// arrived. The steps:
//
//	kernel [RESERVE]           starts a kernel of recorders on an empty disk, whose journal has a reserve of that many bytes
//	CONNECTION: FRAME, …       sends frames together; frame lists them
//	hold-fsyncs, let-fsyncs    keeps the fsyncs of entries from ending; lets them end
//	let-fsync                  lets one fsync end
//	fsyncs                     shows how many have begun since hold-fsyncs
//	fail-fsyncs                fails every fsync, also one that has begun
//	hold-writes, let-writes    keeps the writes of entries from ending; lets them end
//	fail-writes, end-failing   fails every write; lets them succeed again
//	fault N [ERRNO] [short] [lies]
//	                           fails the N-th operation on a file from now on; see faultfs.Fault
//	hit                        shows which operation that was
//	fill                       leaves no room on the disk except for the journal's reserve
//	journal                    shows the calls in the journal
//	start                      shows the state that a start makes of the journal
//	power-cut                  shows it without what was not synced
//	log WORDS                  shows how often the log has the words
//	end                        closes all connections and the kernel
//
// A frame is its own id, so an answer names the frame that it answers; "#N" is its entry.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	testkit.Must(t, err)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t}
				datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
					var seen strings.Builder
					for line := range strings.Lines(d.Input) {
						word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
						seen.WriteString(s.step(word, rest))
						synctest.Wait()
						seen.WriteString(s.answers())
					}
					return seen.String()
				})
			})
		})
	}
}

// script is a file that runs.
type script struct {
	*system

	t      *testing.T
	names  []string // of the connections, as system.clients has them
	fsyncs *syncGate
	writes chan struct{} // closed by let-writes
}

// step takes a step, and returns its output other than the answers.
func (s *script) step(word, rest string) string {
	if name, ok := strings.CutSuffix(word, ":"); ok {
		var frames []string
		for line := range strings.SplitSeq(rest, ", ") {
			frames = append(frames, s.frame(line))
		}
		s.connection(name).send(frames...)
		return ""
	}
	switch word {
	case "kernel":
		reserve, _ := strconv.Atoi(rest)
		s.system = startHosting(s.t, faultfs.NewDisk(), newRecorders().domains(), idempotency.New(), textLog, actors.Hosting{}, reserving(reserve))
		s.names = nil
	case "hold-fsyncs":
		s.fsyncs = s.holdSyncs()
	case "let-fsyncs":
		s.fsyncs.open()
	case "let-fsync":
		s.fsyncs.pass()
	case "fsyncs":
		return fmt.Sprintln(s.fsyncs.begun.Load(), "fsyncs")
	case "fail-fsyncs":
		s.room.breakSync(syscall.EIO)
	case "hold-writes":
		held := make(chan struct{})
		s.writes, s.disk.Hook = held, func(op faultfs.Op) {
			if op.Kind == faultfs.Write && strings.HasSuffix(op.Path, ".ndjson") {
				<-held
			}
		}
	case "let-writes":
		close(s.writes)
	case "fail-writes":
		s.room.full(syscall.ENOSPC)
	case "end-failing":
		s.room.free()
	case "fill":
		s.fill(s.connection("fill"))
	case "fault":
		s.files.Arm(s.fault(strings.Fields(rest)))
	case "hit":
		return "hit: " + s.files.Hit() + "\n"
	case "journal":
		return "journal: " + strings.Join(s.journaled(), ", ") + "\n"
	case "start":
		return "start: " + s.found(s.system)
	case "power-cut":
		return "start: " + s.found(&system{t: s.t, disk: s.disk.Crash(nil, faultfs.LoseAll)})
	case "log":
		return fmt.Sprintln(strings.Count(s.log.String(), rest), "times")
	case "end":
		if err := s.end(); err != nil {
			return "closed: " + strings.ReplaceAll(err.Error(), "\n", "; ") + "\n"
		}
		return "closed\n"
	default:
		s.t.Fatalf("no step %q", word)
	}
	return ""
}

// fault parses a fault.
func (s *script) fault(words []string) (f faultfs.Fault) {
	for _, word := range words {
		switch word {
		case "EIO":
			f.Err = syscall.EIO
		case "ENOSPC":
			f.Err = syscall.ENOSPC
		case "short":
			f.Short = true
		case "lies":
			f.Lies = true
		default:
			n, err := strconv.Atoi(word)
			testkit.Must(s.t, err)
			f.N = n
		}
	}
	return f
}

// connection returns the connection of that name, which it opens at first.
func (s *script) connection(name string) *client {
	for i, n := range s.names {
		if n == name {
			return s.clients[i]
		}
	}
	s.names = append(s.names, name)
	return s.connect()
}

// frame is the frame for a line of words: set KEY, get, spawn NAME, grant PID, processes, ping, metrics, tick N.
func (s *script) frame(line string) string {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "set":
		return set(line, rest)
	case "get":
		return get(line)
	case "spawn":
		return spawn(line, rest)
	case "grant":
		pid, err := strconv.Atoi(rest)
		testkit.Must(s.t, err)
		return grant(line, pid)
	case "processes":
		return processes(line)
	case "ping":
		return ping(line, "1")
	case "metrics":
		return query(line, "Audit.Metrics", "{}")
	case "tick":
		return command(line, "Memory.Set", `{"key":"tick","value":1,"tick":`+rest+`}`)
	}
	s.t.Fatalf("no frame %q", line)
	return ""
}

// answers are the answers that have arrived, by connection.
func (s *script) answers() string {
	var b strings.Builder
	for i, c := range s.clients {
		for _, a := range c.pending() {
			var metrics schema.AuditMetricsOutput
			what := string(a.Data)
			switch {
			case a.Code != "":
				what = a.Code
			case a.Type == "Audit.Metrics":
				testkit.Must(s.t, json.Unmarshal(a.Data, &metrics))
				what = cmp.Or(metrics.Refusing, "metrics")
			}
			fmt.Fprintf(&b, "%s: %s → %s", s.names[i], a.Meta.Causation, what)
			if a.Meta.Kernel != "" {
				var proof schema.Proof
				testkit.Must(s.t, json.Unmarshal([]byte(a.Meta.Kernel), &proof))
				fmt.Fprintf(&b, " #%d", proof.Seq)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// found is the state that a start makes of the journal of k, by domain.
func (s *script) found(k *system) string {
	var list []string
	applied := k.replayed()
	for _, name := range slices.Sorted(maps.Keys(applied)) {
		list = append(list, fmt.Sprintf("%s: %s", name, strings.Join(applied[name], " ")))
	}
	return strings.Join(list, ", ") + "\n"
}
