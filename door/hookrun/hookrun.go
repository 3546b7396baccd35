// Package hookrun answers the hook of an agent host (PROTOCOL 11, 12). It asks the kernel whether a tool may be used. It tells the kernel
// when the tool has ended.
package hookrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// DenyStatus is the exit status with which a hook denies a tool.
const DenyStatus = 2

// Time limits of a hook, within the one that a host gives it: for the host's question, for reaching the kernel, and for its answer, since a
// call may wait for approval. A step may begin for stepTime also after a late approval.
const (
	readTime  = 2 * time.Second
	reachTime = 10 * time.Second
	hookTime  = hook.HostTime - hook.Margin
	stepTime  = 3 * time.Second
)

// Run is one run of a hook.
type Run struct {
	Agent door.Agent    // the process that it acts as
	Tell  bool          // the host only tells: a question that cannot be read denies nothing
	Wait  time.Duration // for the answer to a use, also of a person; 0: as long as hosts usually allow
	Dial  func(context.Context) (*client.Client, error)
	Out   io.Writer                        // for the host
	Say   func(format string, args ...any) // to the user
}

// Answer answers the question of a host. The error is why the tool is denied.
func (r *Run) Answer(ctx context.Context, host string, question io.Reader) error {
	dialect := dialectOf(host)
	text, err := read(ctx, question)
	var q *hook.Question
	if err == nil {
		q, err = hook.Read(host, dialect, bytes.NewReader(text))
	}
	switch {
	case err != nil && (r.Tell || q != nil):
		r.Say("the host's question is invalid: %v", err)
	case err != nil:
		return fmt.Errorf("the host's question is invalid, so the tool is denied: %w", err)
	case q.Use != nil:
		return r.use(ctx, q)
	case q.End != nil:
		if err := r.end(ctx, q); err != nil {
			r.Say("a step does not end: %v", err)
		}
	}
	return nil
}

// dialectOf returns the dialect of a host. Others ask as Claude Code does.
func dialectOf(host string) hook.Dialect {
	if h := preset.Named(host); h != nil {
		return h.Dialect
	}
	return hook.Dialect{}
}

// Denial returns what a host reads on standard output about a tool that is denied, in addition to the status; nil for most.
func Denial(host string, why error) []byte {
	if !dialectOf(host).JSON {
		return nil
	}
	text := append([]byte(`{"permissionDecision":"deny","permissionDecisionReason":`), schema.AppendString(nil, "pwos: "+why.Error())...)
	return append(text, "}\n"...)
}

// read reads a host's question. A host that does not end it must not wait until it gives up on the hook, and uses the tool; the process
// ends then, and with it what reads.
func read(ctx context.Context, question io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, errLate)
	defer cancel()
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(question, hook.Longest+1))
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("read question: %w", r.err)
		}
		return r.text, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errLate = fmt.Errorf("it did not end within %v", readTime)

// within returns a context that ends after d.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fault.CallTimeout.New("no answer within %v", d))
}

// use asks the kernel whether a tool may be used, and begins its step.
func (r *Run) use(ctx context.Context, q *hook.Question) error {
	name := "Tool:" + q.Use.Host + "/" + q.Use.Tool
	asking, cancel := within(ctx, cmp.Or(r.Wait, hookTime))
	defer cancel()
	c, pid, err := r.dial(asking)
	if err != nil {
		return fmt.Errorf("the kernel could not be asked whether %s may be used, so it is denied: %w", name, err)
	}
	defer func() { _ = c.Close() }() // only the answers matter
	out, err := client.Call(asking, c, schema.HostToolUse, q.Use)
	if errors.Is(err, fault.InvalidInput) && q.Use.Use != nil { // an older kernel does not know this member
		q.Use.Use = nil
		out, err = client.Call(asking, c, schema.HostToolUse, q.Use)
	}
	for r.Wait > 0 && errors.Is(err, fault.ApprovalPending) && Again(asking) { // it waits for the same question
		out, err = client.Call(asking, c, schema.HostToolUse, q.Use)
	}
	switch {
	case errors.Is(err, fault.CapabilityDenied):
		return fmt.Errorf("pid %d may use no tool of %s: allow this one with %s", pid, q.Use.Host, quote.Command("pwos", "cap", "grant", strconv.FormatInt(pid, 10), "--add", name))
	case errors.Is(err, fault.Pending), errors.Is(err, fault.ApprovalRefused):
		return fmt.Errorf("%s may not be used: %w%s", name, err, door.Absent(err))
	case fault.Of(err).ID.Domain() == fault.PolicyDenied.Domain():
		return errors.New(name + " is denied: " + fault.Of(err).Text())
	case err != nil:
		return fmt.Errorf("the kernel gave no answer whether %s may be used, so it is denied: %w", name, err)
	case out.Decision != schema.ToolAllow:
		return errors.New(out.Reason)
	}
	if why := heldFrom(q.Use); why != nil {
		return fmt.Errorf("%s is denied: %w", name, why)
	}
	latest, _ := asking.Deadline()
	beginning, cancel := within(ctx, max(stepTime, time.Until(latest)))
	defer cancel()
	_, err = client.Call(beginning, c, schema.StepBegin, q.Begin)
	if err != nil && !errors.Is(err, fault.WireUnknownSyscall) { // an older kernel has no steps
		r.Say("%s is allowed, and what it changes is not kept as a step: %v", name, err)
	}
	return nil
}

// Again waits a moment before a call that waits for an answer is repeated, since a kernel may be set to let no call wait. It reports whether
// there is time for one more.
func Again(ctx context.Context) bool {
	const moment = time.Second
	if latest, bound := ctx.Deadline(); bound && time.Until(latest) < 2*moment {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(moment):
		return true
	}
}

// end tells the kernel that a tool was used, or what the user asks for.
func (r *Run) end(ctx context.Context, q *hook.Question) error {
	ctx, cancel := within(ctx, hookTime)
	defer cancel()
	c, _, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only the answer matters
	out, err := client.Call(ctx, c, schema.StepEnd, q.End)
	if err == nil && q.Event != "" {
		err = r.tell(q.Event, refused(out)+aside(out))
	}
	if err == nil && q.Prompt != nil {
		_, err = client.Call(ctx, c, schema.PromptSubmit, q.Prompt)
	}
	if q.Turn { // whether or not there are steps
		return r.mail(ctx, c)
	}
	if errors.Is(err, fault.WireUnknownSyscall) || errors.Is(err, fault.CapabilityDenied) {
		return nil // nothing has begun: the kernel is older and has no steps, or the process may use no tool
	}
	return err
}

// dial connects to the kernel as the process that the hook acts as.
func (r *Run) dial(ctx context.Context) (*client.Client, int64, error) {
	reach, cancel := within(ctx, reachTime)
	defer cancel()
	c, err := r.Dial(reach)
	if err != nil {
		return nil, 0, fmt.Errorf(`%w: start it with "pwosd" or any call of pwos, and try again`, err)
	}
	pid, err := r.Agent.Become(reach, c, func(string, ...any) {})
	if err != nil {
		_ = c.Close() // the connection is of no use
		return nil, 0, err
	}
	return c, pid, nil
}
