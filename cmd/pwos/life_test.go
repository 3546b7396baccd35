package main_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestHeard checks that events are decoded however the output is split, and that an error makes the client poll instead.
func TestHeard(t *testing.T) {
	t.Parallel()
	const event = `{"kind":"event","type":"Process.Restarted","data":{"pid":7,"agent_id":"x","parent_pid":0,"state":"RUNNING","priority":"NORMAL",` +
		`"intent":"","role":"","resource_quota":{},"birth_tick":0,"origin":"o","restarts":2,"exit":{"code":3,"reason":"exited","tick":1}},` +
		`"metadata":{"id":"e","timestamp":1}}` + "\n"
	const reply = `{"kind":"reply","type":"Process.Subscribe","data":{"pid":7},"metadata":{"id":"r","timestamp":1}}` + "\n"
	restarted, refused, news := pwos.Heard(reply+event[:40], event[40:], event)
	if len(restarted) != 2 || refused || !news {
		t.Fatalf("%d restarts, refused %v, event signalled %v", len(restarted), refused, news)
	}
	if d := restarted[0]; d.PID != 7 || *d.Restarts != 2 || *d.Exit.Code != 3 {
		t.Errorf("the restarted process is %+v", d)
	}
	for _, line := range []string{
		`{"kind":"error","type":"Process.Subscribe","data":{"code":404,"message":"no"},"metadata":{"id":"r","timestamp":1}}` + "\n", "nonsense\n",
	} {
		if _, refused, news := pwos.Heard(line); !refused || !news {
			t.Errorf("%q: refused %v, event signalled %v", line, refused, news)
		}
	}
}

// TestFollowEndsWithTheKernel checks that a connection that the kernel closes is signalled, although it delivers no event.
func TestFollowEndsWithTheKernel(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	kernel, err := net.Listen("unix", filepath.Join(dir, "kernel.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := kernel.Accept()
		if err != nil {
			served <- err
			return
		}
		defer conn.Close()
		_, err = io.WriteString(conn, `{"kind":"command","type":"Syscall.Authenticate","data":{"scheme":"none"},"metadata":{"id":"1","timestamp":1}}`+"\n")
		lines := bufio.NewReader(conn)
		for range 2 { // the client's part of the handshake, and its subscription
			if err == nil {
				_, err = lines.ReadString('\n')
			}
		}
		served <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if gone, err := pwos.Follow(ctx, dir); !gone || err != nil {
		t.Errorf("the kernel's end: subscription ended %v, %v", gone, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestLog checks that a log is shown once and in order, also across a rotation.
func TestLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stderr.log")
	next, done := pwos.LogOf(path)
	expect := func(want string) {
		t.Helper()
		if got, err := next(); got != want || err != nil {
			t.Errorf("it shows %q, %v, want %q", got, err, want)
		}
	}
	expect("")
	appendTo(t, path, "one\n")
	expect("one\n")
	expect("")
	appendTo(t, path, "two\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	expect("two\n") // the kernel has not created the new file yet
	appendTo(t, path, "three\n")
	expect("three\n")
	appendTo(t, path, "four\n")
	expect("four\n")
	if err := done(); err != nil {
		t.Error(err)
	}
	if all, err := pwos.OldLog(path); all != "one\ntwo\nthree\nfour\n" || err != nil {
		t.Errorf("from its beginning it is %q, %v", all, err)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
