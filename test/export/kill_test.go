// Package export_test exports what a whole kernel records. It kills real exporters.
package export_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

// TestKilled kills exports with SIGKILL while calls are recorded, each after some of its records were seen. A file has each
// entry once; on stdout none is missing, and a repeated one has the same id. PWOS_LONG=1 does it 50 times.
func TestKilled(t *testing.T) {
	t.Parallel()
	rounds := testkit.Rounds(2, 5, 50)
	p := testkit.NewPlace(t, "")
	d := testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Dir: p.Dir}
	daemon := d.Start(t)
	writing := write(t, p)
	chance := rand.New(rand.NewPCG(1, 16))
	file, cursor := p.Path("record.jsonl"), p.Path("cursor")
	var streamed bytes.Buffer
	for range rounds {
		e := pwos(t, p, "--to", file, "--follow")
		from := end(t, file)
		testkit.Must(t, e.Start())
		awaitLines(t, file, from, chance.IntN(mostSeen))
		kill(t, e)

		e = pwos(t, p, "--cursor", cursor, "--follow")
		out := testkit.Value(e.StdoutPipe())(t)
		testkit.Must(t, e.Start())
		lines := bufio.NewReader(out)
		for range chance.IntN(mostSeen) {
			line, err := lines.ReadBytes('\n')
			testkit.Must(t, err)
			streamed.Write(line)
		}
		testkit.Must(t, e.Process.Kill())
		rest := testkit.Value(io.ReadAll(lines))(t)
		_ = e.Wait() // it was killed
		streamed.Write(rest[:bytes.LastIndexByte(rest, '\n')+1])
	}
	writing()
	testkit.Must(t, pwos(t, p, "--to", file).Run())
	last := pwos(t, p, "--cursor", cursor)
	last.Stdout = &streamed
	testkit.Must(t, last.Run())

	inFile := records(t, []byte(testkit.ReadFile(t, file)))
	if want := logged(t, testkernel.Dial(t, p.RuntimeDir()), inFile[len(inFile)-1]); !slices.Equal(inFile, want) {
		t.Errorf("the file has %d entries, the record %d", len(inFile), len(want))
	}
	all := records(t, streamed.Bytes())
	again := len(all)
	slices.Sort(all)
	all = slices.Compact(all)
	if want := logged(t, testkernel.Dial(t, p.RuntimeDir()), all[len(all)-1]); !slices.Equal(all, want) {
		t.Errorf("stdout had %d entries, the record %d", len(all), len(want))
	}
	t.Logf("%d rounds: %d entries in the file, %d on stdout, %d of them again", rounds, len(inFile), len(all), again-len(all))
	daemon.Stop(t)
}

// mostSeen is more than the records that are seen before an export is killed; if that is none, it may not have started.
const mostSeen = 100

func kill(t *testing.T, e *exec.Cmd) {
	t.Helper()
	testkit.Must(t, e.Process.Kill())
	_ = e.Wait() // it was killed
}

// end returns the end of the last whole line of a file; 0 if there is none, or no file.
func end(t *testing.T, file string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		testkit.Must(t, err)
	}
	return int64(bytes.LastIndexByte(text, '\n') + 1)
}

// awaitLines waits until a file has n lines after an offset.
func awaitLines(t *testing.T, file string, from int64, n int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d more records in the file", n), func() bool {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return n == 0
		}
		testkit.Must(t, err)
		defer f.Close() // read only
		more := testkit.Value(io.ReadAll(io.NewSectionReader(f, from, math.MaxInt64-from)))(t)
		return bytes.Count(more, []byte("\n")) >= n
	})
}

// write makes calls until the returned function is called.
func write(t *testing.T, p *testkit.Place) (stop func()) {
	t.Helper()
	c := testkernel.Dial(t, p.RuntimeDir())
	var over atomic.Bool
	ended := make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil && !over.Load(); i++ {
			_, err = client.Call(t.Context(), c, schema.MemorySet, &schema.MemorySetInput{Key: fmt.Sprint("k", i%100), Value: schema.Value("1")})
		}
		ended <- err
	}()
	return func() {
		t.Helper()
		over.Store(true)
		testkit.Must(t, testkit.Receive(t, ended, "the end of the calls"))
	}
}

// pwos returns an export that has not started yet.
func pwos(t *testing.T, p *testkit.Place, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Program(t, "pwos"), append([]string{"export", "jsonl", "--no-spawn"}, args...)...)
	cmd.Env = []string{"HOME=" + p.Dir, "PWOS_RUNTIME_DIR=" + p.RuntimeDir(), "PWOS_STATE_DIR=" + p.StateDir()}
	return cmd
}

// records returns the entries of lines, each with the id that is derived from it.
func records(t *testing.T, text []byte) (seqs []int64) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var r struct {
			ID, Instance string
			Epoch, Seq   int64
			Entry        struct{ Seq int64 }
		}
		testkit.Must(t, json.Unmarshal(line, &r))
		if r.ID != fmt.Sprintf("%s/%d/%d", r.Instance, r.Epoch, r.Seq) || r.Seq != r.Entry.Seq {
			t.Fatalf("a record is %s", line)
		}
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

// logged returns the entries that Audit.Log shows, up to one.
func logged(t *testing.T, c *client.Client, last int64) (seqs []int64) {
	t.Helper()
	limit, since := int64(1000), int64(0)
	for more := true; more; {
		out := testkit.Value(client.Call(testkit.Context(t), c, schema.AuditLog, &schema.AuditLogInput{SinceSeq: &since, Limit: &limit}))(t)
		for _, e := range out.Entries {
			if e.Seq <= last {
				seqs = append(seqs, e.Seq)
			}
		}
		since, more = out.Next, out.Next != 0 && out.Next <= last
	}
	return seqs
}
