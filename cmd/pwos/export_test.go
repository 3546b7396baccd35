package main

import "context"

// What the tests of this package look at.
var (
	Status    = status
	Advice    = advice
	BuildData = buildData
	CutMode   = cutMode
	Shown     = shown
	ErrSeen   = errSeen
	Hang      = hang
)

// TimedOut is the cause of a context that --timeout has ended.
func TimedOut() error {
	a := app{timeout: 1}
	ctx, cancel := a.bound(context.Background(), 0)
	defer cancel()
	<-ctx.Done()
	return context.Cause(ctx)
}

// Usage is an error of wrong usage.
func Usage(err error) error { return &usageError{"pwos call", err} }

// TableText is what printValue shows at a terminal.
func TableText(raw []byte) (string, error) {
	var b writer
	err := tableOf(raw).write(&b)
	return string(b), err
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
