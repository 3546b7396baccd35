package main

import (
	"context"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// Heard writes pieces of a kernel's output to a life. It returns the restarted processes, whether the subscription has failed, and
// whether an event was signalled.
func Heard(pieces ...string) (restarted []schema.Descriptor, refused, news bool) {
	l := &life{news: make(chan struct{}, 1)}
	for _, piece := range pieces {
		if _, err := l.Write([]byte(piece)); err != nil {
			return nil, false, false
		}
	}
	return l.restarts(), l.refused.Load(), len(l.news) > 0
}

// Follow follows all processes of the kernel in a runtime directory until ctx ends or the subscription fails, and reports whether
// it failed.
func Follow(ctx context.Context, runtimeDir string) (refused bool, err error) {
	l, err := followLife(ctx, client.Options{RuntimeDir: runtimeDir}, 0)
	if err != nil {
		return false, err
	}
	for !l.refused.Load() && ctx.Err() == nil {
		select {
		case <-l.news:
		case <-ctx.Done():
		}
	}
	return l.refused.Load(), l.Close()
}

// LogOf follows the log at path. Each call of next returns the output since the last call.
func LogOf(path string) (next func() (string, error), done func() error) {
	var b writer
	l := &agentLog{path: path, out: &b}
	return func() (string, error) {
		b = nil
		err := l.copy()
		return string(b), err
	}, l.close
}

// OldLog reads a log from its rotated file on, as `pwos logs` does.
func OldLog(path string) (string, error) {
	var b writer
	l := &agentLog{path: path, out: &b}
	if err := l.oldest(); err != nil {
		return "", err
	}
	err := l.copy()
	if closeErr := l.close(); err == nil {
		err = closeErr
	}
	return string(b), err
}
