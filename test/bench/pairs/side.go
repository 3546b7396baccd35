package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// side is where a work is done: outside, or inside a kernel of its own.
type side struct {
	name, dir string
	pwos      string // the client; "": outside
	pid       int    // of the kernel

	at       string          // the directory of the current work
	walls    []time.Duration // of its rounds
	client   time.Duration   // processor time of all rounds, as the next two
	kernel   time.Duration
	children time.Duration
}

// begin makes the directories, and starts the kernel.
func (s *side) begin(ctx context.Context) error {
	for _, dir := range []string{"home", "run"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	if s.pwos == "" {
		return nil
	}
	s.at = s.dir
	if err := s.shell(ctx, `"$PWOS" ps >/dev/null`); err != nil {
		return err
	}
	lock, err := os.ReadFile(filepath.Join(s.dir, "run", "pwos", "kernel.lock"))
	if err != nil {
		return fmt.Errorf("find the kernel: %w", err)
	}
	if s.pid, err = strconv.Atoi(strings.TrimSpace(string(lock))); err != nil {
		return fmt.Errorf("find the kernel: %w", err)
	}
	return nil
}

// end ends the kernel.
func (s *side) end() error {
	if s.pid == 0 {
		return nil
	}
	s.at = s.dir
	return s.shell(context.Background(), `"$PWOS" shutdown >/dev/null`)
}

// prepare makes the directory of a work.
func (s *side) prepare(ctx context.Context, w work, from source) error {
	s.at = filepath.Join(s.dir, w.name)
	if err := os.Mkdir(s.at, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return s.shell(ctx, w.prepare, "REPOSITORY="+from.repository, "NPM="+from.npm)
}

// do does the work once.
func (s *side) do(ctx context.Context, w work, round int) error {
	if err := s.shell(ctx, w.before, "ROUND="+strconv.Itoa(round)); err != nil {
		return err
	}
	args := w.program
	switch {
	case w.pipe != "":
		args = []string{"sh", "-c", w.pipe}
	case s.pwos != "":
		args = slices.Concat([]string{s.pwos, "run", "--"}, args)
	}
	cmd := s.command(ctx, args[0], args[1:]...)
	if s.pwos != "" {
		cmd.Env = append(cmd.Env, "RUN="+s.pwos+" run --")
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	start := time.Now()
	err := cmd.Run()
	s.walls = append(s.walls, time.Since(start))
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", s.name, err, said.String())
	}
	s.client += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return nil
}

// reset begins to measure, and sum ends it.
func (s *side) reset(ctx context.Context) error {
	kernel, children, err := s.used(ctx)
	s.walls, s.client, s.kernel, s.children = nil, 0, -kernel, -children
	return err
}

func (s *side) sum(ctx context.Context) error {
	kernel, children, err := s.used(ctx)
	s.kernel, s.children = s.kernel+kernel, s.children+children
	return err
}

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// used returns the processor time that the kernel has used, and the ended processes that it started. The last of them may still be ending.
func (s *side) used(ctx context.Context) (kernel, children time.Duration, err error) {
	if s.pid == 0 {
		return 0, 0, nil
	}
	if err := s.shell(ctx, `while "$PWOS" ps | grep -q running; do :; done; sleep 0.2`); err != nil {
		return 0, 0, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read the times of the kernel: %w", err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // proc_pid_stat(5), from the third field on
	var times [4]time.Duration                                                // utime, stime, cutime, cstime
	for i := range times {
		n, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read the times of the kernel: %w", err)
		}
		times[i] = time.Duration(n) * tick
	}
	return times[0] + times[1], times[2] + times[3], nil
}

// wall returns the median.
func (s *side) wall() time.Duration {
	sorted := slices.Sorted(slices.Values(s.walls))
	return sorted[len(sorted)/2]
}

// each returns what of a sum is one round's, in milliseconds.
func (s *side) each(sum time.Duration) float64 { return ms(sum) / float64(len(s.walls)) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// command returns a command in the directory of the current work. Outside has a home of its own too, but no kernel.
func (s *side) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.at
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(s.dir, "home"), "XDG_RUNTIME_DIR="+filepath.Join(s.dir, "run"), "PWOS="+s.pwos, "PWD="+s.at)
	return cmd
}

// shell runs a text that is not measured.
func (s *side) shell(ctx context.Context, text string, env ...string) error {
	cmd := s.command(ctx, "sh", "-c", text)
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s: %w\n%s", s.name, text, err, out)
	}
	return nil
}
