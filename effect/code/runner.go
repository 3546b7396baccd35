package code

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Check checks code before its registration. It returns a fault.SyscallBadCode, with line and column if they are known,
// or the error that prevented the check.
func (w *Workers) Check(ctx context.Context, source string) error {
	answer, err := w.do(ctx, &frame{check, [2][]byte{[]byte(source)}}, checkTime)
	switch said := string(answer.text[0]); {
	case err != nil:
		return err
	case answer.is == done:
		return nil
	case answer.is == badCode:
		return bad("%s", said)
	case answer.is == threw:
		return bad("it throws when it is loaded: %s", said)
	case answer.is == overTime:
		return bad("it takes more than %v to load", checkTime)
	default:
		return bad("it needs more memory or stack than it may when it is loaded")
	}
}

func bad(format string, args ...any) *fault.Fault {
	return fault.SyscallBadCode.New("code cannot be registered: "+format, args...).At("code")
}

// Invoke calls the handler of a registered syscall.
func (w *Workers) Invoke(ctx context.Context, job *kernel.Job, do *kernel.Invocation) (schema.Value, error) {
	l := w.Limits.normal()
	began := time.Now()
	answer, err := w.do(ctx, &frame{call, [2][]byte{[]byte(*do.Code), do.Data}}, l.Time)
	if err != nil {
		return nil, fault.Prefix(err, "call %s", do.Name)
	}
	if logged := strings.TrimSuffix(string(answer.text[1]), "\n"); logged != "" {
		w.Log.Info("a handler writes", "syscall", do.Name, "pid", job.PID, "text", logged)
	}
	said := fault.Clip(strings.ToValidUTF8(string(answer.text[0]), "\uFFFD"))
	switch answer.is {
	case done:
		if !schema.ValidWithin(answer.text[0], schema.MaxKeptDepth) {
			return nil, unusableAnswer(do.Name, fmt.Sprintf("half a surrogate pair, or values that are nested deeper than %d levels", schema.MaxKeptDepth))
		}
		return answer.text[0], nil
	case threw:
		return nil, fault.ProviderFailed.New("the handler of %s threw: %s", do.Name, said)
	case badCode: // possible after a change of esbuild or QuickJS
		return nil, fault.ProviderFailed.New("the code of %s cannot be loaded: %s", do.Name, said)
	case unusable:
		return nil, unusableAnswer(do.Name, said)
	case overTime:
		return nil, fault.ProviderTimeout.New("the handler of %s was stopped after %v: it may take %v", do.Name, time.Since(began).Round(time.Millisecond), l.Time)
	case overMemory:
		return nil, fault.ProviderLimit.New("the handler of %s needs more memory than %d bytes, or too deep a stack: %s", do.Name, l.MemoryBytes, said)
	default:
		return nil, fault.ProviderLimit.New("the handler of %s returned more than %d bytes", do.Name, l.OutputBytes)
	}
}

func unusableAnswer(name, what string) *fault.Fault {
	return fault.ProviderBadAnswer.New("the handler of %s must return a JSON value, and not this: %s", name, what)
}
