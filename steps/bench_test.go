package steps_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/steps"
)

// BenchmarkTree measures a store of a tree: its first fill, beside tar and zstd where they are, a step that changes 13 files, its undo, and
// opening it again. The tree is a copy of the directory PWOS_TREE, or as many generated files as that says (2,000).
func BenchmarkTree(b *testing.B) {
	at := b.TempDir()
	root, dir := filepath.Join(at, "tree"), filepath.Join(at, "store")
	paths, size := grow(b, root)
	measure := func(what string, do func()) {
		var before, after syscall.Rusage
		testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
		begin := time.Now()
		do()
		b.ReportMetric(float64(time.Since(begin).Microseconds())/1000, what+"-wall-ms")
		testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
		spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(spent)/1e6, what+"-cpu-ms")
	}
	if _, err := exec.LookPath("zstd"); err == nil {
		begin := time.Now()
		command := exec.Command("sh", "-c", "tar -c "+root+" | zstd -q -1 -T1 | wc -c")
		out, err := command.Output()
		testkit.Must(b, err)
		b.ReportMetric(float64((command.ProcessState.UserTime()+command.ProcessState.SystemTime()).Microseconds())/1000, "tar-zstd-cpu-ms")
		packed := testkit.Value(strconv.Atoi(string(out[:len(out)-1])))(b)
		b.ReportMetric(time.Since(begin).Seconds()*1000, "tar-zstd-wall-ms")
		b.ReportMetric(float64(packed)/1e6, "tar-zstd-MB")
	}
	b.ReportMetric(float64(size)/1e6, "tree-MB")
	b.ReportMetric(0, "ns/op") // one pass has all

	store := testkit.Value(steps.Open(dir, root, steps.Options{}))(b)
	fill := func() { testkit.Value(store.Fill(b.Context(), steps.Label{Kind: steps.Outside}))(b) }
	measure("fill", fill)
	stored := int64(0)
	testkit.EachFile(b, func(_ string, content []byte) { stored += int64(len(content)) }, dir)
	b.ReportMetric(float64(stored)/1e6, "store-MB")
	testkit.Value(store.Cut(b.Context(), steps.Label{Kind: steps.Outside}))(b)
	measure("idle-cut", func() { testkit.Value(store.Cut(b.Context(), steps.Label{Kind: steps.Outside}))(b) })
	change := func(text string) {
		for i := range 13 {
			testkit.Must(b, os.WriteFile(paths[i*len(paths)/13], fmt.Append(nil, text, i), 0o644))
		}
	}
	change("changed")
	var step *steps.Step
	measure("begin", func() { testkit.Value(store.Cut(b.Context(), steps.Label{Kind: steps.Outside}))(b) })
	change("again")
	measure("end", func() { step = testkit.Value(store.Cut(b.Context(), steps.Label{Kind: steps.Call, Agent: "a"}))(b) })
	if step == nil || len(step.Changes) != 13 {
		b.Fatalf("the step has %+v", step)
	}
	measure("undo", func() {
		testkit.Value(store.Undo(b.Context(), []uint64{step.Seq}, steps.UndoOptions{Before: steps.Label{Kind: steps.Outside}}))(b)
	})
	testkit.Must(b, store.Close())
	store = testkit.Value(steps.Open(dir, root, steps.Options{}))(b)
	measure("reopen", fill)
	testkit.Must(b, store.Close())
}

// grow makes the tree of a benchmark, and returns its files and their size.
func grow(b *testing.B, root string) (paths []string, size int64) {
	b.Helper()
	what := cmp.Or(os.Getenv("PWOS_TREE"), "2000")
	if files, err := strconv.Atoi(what); err != nil {
		testkit.Must(b, exec.Command("cp", "-a", what, root).Run())
		testkit.Must(b, exec.Command("chmod", "-R", "u+w", root).Run())
	} else {
		random := rand.New(rand.NewPCG(1, 2))
		for i := range files {
			path := filepath.Join(root, fmt.Sprintf("d%d/d%d/f%d", i/1000, i/10%100, i))
			testkit.Must(b, os.MkdirAll(filepath.Dir(path), 0o755))
			text := make([]byte, 0, 8192)
			for most := 1024 + random.IntN(6000); len(text) < most; {
				text = fmt.Appendf(text, "func f%d(a int) { return %d }\n", random.IntN(1000), random.Uint32())
			}
			testkit.Must(b, os.WriteFile(path, text, 0o644))
		}
	}
	testkit.Must(b, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			paths, size = append(paths, path), size+info.Size()
		}
		return err
	}))
	b.ReportMetric(float64(len(paths)), "files")
	return paths, size
}
