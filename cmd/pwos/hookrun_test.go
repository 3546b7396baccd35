package main_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestHookOfNoKernel checks that a tool is denied if the server at the socket is not a kernel.
func TestHookOfNoKernel(t *testing.T) {
	t.Parallel()
	const hello = `{"kind":"command","type":"Syscall.Authenticate","data":{"scheme":"none"},"metadata":{"id":"a","timestamp":0}}` + "\n"
	for name, says := range map[string]string{
		"nothing": "", "garbage": "garbage\n", "half": `{"kind":`, "an answer that is none": hello + "garbage\n",
		"another's answer": hello + `{"kind":"reply","type":"Syscall.Ping","data":{"decision":"allow","reason":""},"metadata":{"id":"b","timestamp":0,"causation":"c"}}` + "\n",
		"an error":         hello + `{"kind":"error","type":"Syscall.Ping","data":{"code":503,"message":"no"},"metadata":{"id":"b","timestamp":0}}` + "\n",
	} {
		for _, hangsUp := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := testkit.Dir(t)
				listener, err := net.Listen("unix", filepath.Join(dir, "kernel.sock"))
				if err != nil {
					t.Fatal(err)
				}
				go serveNonsense(listener, says, hangsUp)
				t.Cleanup(func() { _ = listener.Close() })
				file := filepath.Join(dir, "question")
				if err := os.WriteFile(file, []byte(`{"session_id":"s","tool_name":"Bash","tool_input":{}}`), 0o600); err != nil {
					t.Fatal(err)
				}
				question, err := os.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = question.Close() }()
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				if why := pwos.ToolUse(ctx, question, dir); !strings.Contains(why, "denied") {
					t.Errorf("the hook says %q", why)
				}
			})
		}
	}
}

// serveNonsense gives every connection the same answer.
func serveNonsense(listener net.Listener, says string, hangsUp bool) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		_, err = c.Write([]byte(says))
		if hangsUp || err != nil {
			_ = c.Close()
			continue
		}
		go func() {
			buf := make([]byte, 1024)
			for !errors.Is(err, net.ErrClosed) {
				if _, err = c.Read(buf); err != nil {
					_ = c.Close()
					return
				}
			}
		}()
	}
}
