package scripts_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// line returns message i.
func line(i int) string {
	return fmt.Sprintf(`{"kind":"query","type":"Syscall.Ping","data":{"payload":%d},"metadata":{"id":"flood-%d","timestamp":0}}`+"\n", i, i)
}

// A hundred thousand lines through one pipe return in order.
func TestFlood(t *testing.T) {
	t.Parallel()
	const n = 100_000
	p := settle(t)
	cmd := p.command(t.Context())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	fed := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(in)
		for i := range n {
			_, _ = w.WriteString(line(i)) // a bufio.Writer keeps its first error for Flush
		}
		err := w.Flush()
		if closeErr := in.Close(); err == nil {
			err = closeErr
		}
		fed <- err
	}()
	answers := bufio.NewScanner(out)
	came := 0
	for ; answers.Scan(); came++ {
		got := answers.Text()
		if !strings.HasPrefix(got, fmt.Sprintf(`{"kind":"reply","type":"Syscall.Ping","data":{"payload":%d},`, came)) ||
			!strings.Contains(got, fmt.Sprintf(`"causation":"flood-%d"`, came)) {
			t.Fatalf("answer %d is %s", came, got)
		}
	}
	testkit.Must(t, answers.Err())
	testkit.Must(t, <-fed)
	testkit.Must(t, cmd.Wait())
	if came != n {
		t.Errorf("%d answers, want %d", came, n)
	}
	p.pwos(t, "shutdown")
}

// A client gets the answer to a message before it sends more: nothing waits for the end of input.
func TestConversation(t *testing.T) {
	t.Parallel()
	p := settle(t)
	k := startTalk(t, p)
	for range 100 {
		k.say(t)
	}
	testkit.Must(t, k.in.Close())
	if status := k.end(t); status != 0 {
		t.Errorf("exit status %d, stderr %q", status, k.stderr.String())
	}
	p.pwos(t, "shutdown")
}

// `| head` ends silently, however much output is left.
func TestOutputClosed(t *testing.T) {
	t.Parallel()
	p := settle(t)
	var stderr strings.Builder
	cmd := p.command(t.Context())
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	var feeding sync.WaitGroup
	feeding.Go(func() { // until pwos has ended
		for i := 0; ; i++ {
			if _, err := io.WriteString(in, line(i)); err != nil {
				return
			}
		}
	})
	defer feeding.Wait()
	_, err = bufio.NewReaderSize(out, 16).ReadString('\n')
	testkit.Must(t, err)
	testkit.Must(t, out.Close())
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v, stderr %q, want no error and an empty stderr", err, stderr.String())
	}
	p.pwos(t, "shutdown")
}
