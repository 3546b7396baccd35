package host_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// BenchmarkSpawn measures the time from the start to the end of a program that does nothing, and the time of os/exec for
// the same with the same three pipes. "at-once" keeps all processors busy.
func BenchmarkSpawn(b *testing.B) {
	h := open(b)
	dir := b.TempDir()
	sandboxed := func(mode host.Mode) func() error {
		return func() error {
			p, err := h.Start(b.Context(), host.Command{Argv: []string{"/bin/true"}, Dir: dir, PID: 1, Sandbox: mode})
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, p.Conn())
			<-p.Done()
			return firstOf(err, p.Conn().Close())
		}
	}
	ways := map[string]func() error{
		"off": sandboxed(host.SandboxOff), "default": sandboxed(host.SandboxDefault), "strict": sandboxed(host.SandboxStrict),
		"os-exec": func() error {
			cmd := exec.Command("/bin/true")
			cmd.Dir = dir
			_, err := cmd.StdinPipe()
			if err != nil {
				return err
			}
			cmd.Stdout, cmd.Stderr = struct{ io.Writer }{io.Discard}, struct{ io.Writer }{io.Discard}
			return cmd.Run()
		},
	}
	for _, name := range []string{"off", "default", "strict", "os-exec"} {
		b.Run(name+"/one", func(b *testing.B) {
			for b.Loop() {
				testkit.Must(b, ways[name]())
			}
		})
		b.Run(name+"/at-once", func(b *testing.B) {
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := ways[name](); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkMemory measures the memory for an idle agent: of the program itself, and of the daemon and the guard for it, in
// kilobytes of private memory or its share of shared memory.
func BenchmarkMemory(b *testing.B) {
	const many = 500
	dir := b.TempDir()
	b.Run("host", func(b *testing.B) {
		h := open(b)
		for b.Loop() {
			before := pss(b, os.Getpid())
			var sum int
			for range many {
				p := start(b, h, host.Command{Argv: []string{"/bin/cat"}, Dir: dir})
				sum += pss(b, p.OSPID())
			}
			b.ReportMetric(float64(sum)/many, "program-kB")
			b.ReportMetric(float64(pss(b, os.Getpid())-before)/many, "daemon-kB/agent")
			b.ReportMetric(float64(pss(b, guardOf(os.Getpid()))), "guard-kB")
			b.ReportMetric(float64(threads(b)), "threads")
			for _, p := range h.Processes() {
				p.Kill()
				<-p.Done()
			}
		}
	})
	b.Run("os-exec", func(b *testing.B) {
		for b.Loop() {
			before := pss(b, os.Getpid())
			var sum int
			var ends []func()
			for range many {
				cmd := exec.Command("/bin/cat")
				in, err := cmd.StdinPipe()
				testkit.Must(b, err)
				cmd.Stdout, cmd.Stderr = struct{ io.Writer }{io.Discard}, struct{ io.Writer }{io.Discard}
				testkit.Must(b, cmd.Start())
				done := make(chan error)
				go func() { done <- cmd.Wait() }() // each process must be waited for
				ends = append(ends, func() { testkit.Must(b, in.Close()); testkit.Must(b, <-done) })
				sum += pss(b, cmd.Process.Pid)
			}
			b.ReportMetric(float64(sum)/many, "program-kB")
			b.ReportMetric(float64(pss(b, os.Getpid())-before)/many, "daemon-kB/agent")
			b.ReportMetric(float64(threads(b)), "threads")
			for _, end := range ends {
				end()
			}
		}
	})
}

// pss returns a process's share of the memory in use, in kB.
func pss(b *testing.B, pid int) int {
	return field(b, fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")
}

// threads counts this process's threads.
func threads(b *testing.B) int { return field(b, "/proc/self/status", "Threads:") }

// field reads a number from one of the system's tables.
func field(b *testing.B, path, name string) (n int) {
	b.Helper()
	f, err := os.Open(path)
	testkit.Must(b, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			_, err := fmt.Sscan(rest, &n)
			testkit.Must(b, err)
			return n
		}
	}
	b.Fatalf("%s has no %s", path, name)
	return 0
}
