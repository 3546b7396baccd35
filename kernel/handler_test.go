package kernel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// clockHandlers are the handlers of two rows whose domain has others too.
func clockHandlers() []kernel.Handler {
	get := func(call *kernel.Call, _ *schema.ClockGetInput) (schema.ClockOutput, error) {
		return schema.ClockOutput{Tick: call.Tick}, nil
	}
	advance := func(call *kernel.Call, in *schema.ClockAdvanceInput) (schema.ClockOutput, error) {
		return schema.ClockOutput{Tick: call.Tick + in.Ticks}, nil
	}
	return []kernel.Handler{kernel.Query(schema.ClockGet, get), kernel.Command(schema.ClockAdvance, advance, nil)}
}

// httpHandlers are the handlers of a domain of two rows.
func httpHandlers(
	decide func(*kernel.Call, *schema.HTTPFetchInput) (*string, error), apply func(*kernel.Entry, *schema.EffectEnd),
) []kernel.Handler {
	end := func(*kernel.Call, *schema.EffectEnd) (schema.Value, error) { return schema.Value(`1.0`), nil }
	return []kernel.Handler{kernel.Effect(schema.HTTPFetch, decide), kernel.Step(schema.HTTPFetch.End, end, apply)}
}

// TestBindRefuses: handlers and rows that do not match are refused.
func TestBindRefuses(t *testing.T) {
	t.Parallel()
	unlisted := schema.NewQuery[schema.ClockGetInput, schema.ClockOutput](schema.Syscall{Type: "Clock.Unlisted", Domain: schema.Http})
	get := func(*kernel.Call, *schema.ClockGetInput) (out schema.ClockOutput, err error) { return out, err }
	all := httpHandlers(nil, nil)
	for name, test := range map[string]struct {
		handlers []kernel.Handler
		says     string
	}{
		"a row without a handler":       {all[:1], "Http.Fetched has no handler"},
		"a handler without a row":       {append(all[:2:2], kernel.Query(unlisted, get)), "Clock.Unlisted is not in the syscall table"},
		"a row with two handlers":       {append(all[:2:2], all[0]), "Http.Fetch has two handlers"},
		"a handler of another domain":   {append(all[:2:2], clockHandlers()[0]), "Clock.Get is a syscall of kernel"},
		"as many handlers as there are": {all, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				said, _ := recover().(string)
				if (said == "") != (test.says == "") || !strings.Contains(said, test.says) {
					t.Errorf("the panic is %q, want %q", said, test.says)
				}
			}()
			kernel.Bind(schema.Http, test.handlers...)
		})
	}
}

// TestBindRefusesAppliedSecrets: a command cannot be applied if the journal withholds part of its data.
func TestBindRefusesAppliedSecrets(t *testing.T) {
	t.Parallel()
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, `Crypto.Seal is applied, but the journal withholds ["plaintext"]`) {
			t.Errorf("the panic is %q", said)
		}
	}()
	seal := func(*kernel.Call, *schema.SealInput) (out schema.SealOutput, err error) { return out, err }
	kernel.Bind(schema.Crypto, kernel.Command(schema.CryptoSeal, seal, func(*kernel.Entry, *schema.SealInput) {}))
}

// TestHandlers: what a handler returns and asks for becomes the result of its own call only.
func TestHandlers(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	step := schema.IPCOpen.With(&schema.MailboxInput{PIDs: []int64{7}})
	var applied []kernel.Entry
	handlers := kernel.Bind(schema.Http, httpHandlers(
		func(call *kernel.Call, in *schema.HTTPFetchInput) (*string, error) {
			switch call.Step(step); in.URL {
			case "refused":
				return nil, refused
			default:
				return &in.URL, nil
			}
		},
		func(e *kernel.Entry, in *schema.EffectEnd) { applied = append(applied, *e) })...)

	intent := &kernel.Call{Request: kernel.Request{Syscall: schema.HTTPFetch.Syscall, Input: &schema.HTTPFetchInput{URL: "u"}}}
	result, err := handlers.Decide(intent)
	if err != nil || result.Effect == nil || *result.Effect.Run.(*string) != "u" || len(result.Steps) != 1 || result.Steps[0] != step {
		t.Errorf("an effect: %+v, %v", result, err)
	}
	run := kernel.Run(func(_ context.Context, job *kernel.Job, do *string) (schema.HTTPFetchOutput, error) {
		if *do == "fails" {
			return schema.HTTPFetchOutput{}, refused
		}
		return schema.HTTPFetchOutput{Status: job.PID}, nil
	})
	if data, err := run(t.Context(), &kernel.Job{Do: result.Effect.Run, PID: 7}); err != nil || !strings.Contains(string(data), `"status":7`) {
		t.Errorf("run: %s, %v", data, err)
	}
	fails := "fails"
	if _, err := run(t.Context(), &kernel.Job{Do: &fails}); !errors.Is(err, refused) {
		t.Errorf("run: %v", err)
	}
	intent.Input = &schema.HTTPFetchInput{URL: "refused"}
	if result, err := handlers.Decide(intent); !errors.Is(err, refused) || result.Data != nil || result.Steps != nil {
		t.Errorf("refused: %+v, %v", result, err)
	}

	end := &kernel.Call{Request: kernel.Request{Syscall: schema.HTTPFetch.End.Syscall, Input: &schema.EffectEnd{}, Caller: kernel.Caller{Conn: "c-1"}}, Decision: kernel.Decision{PID: 7, Moment: kernel.Moment{Tick: 3}}}
	if result, err := handlers.Decide(end); err != nil || string(result.Data) != "1.0" || result.Steps != nil {
		t.Errorf("a raw reply: %s, %+v, %v", result.Data, result, err)
	}
	end.Data = []byte("1.0")
	handlers.Apply(end)
	if len(applied) != 1 || applied[0].PID != 7 || applied[0].Tick != 3 || applied[0].Conn != "c-1" || string(applied[0].Data) != "1.0" {
		t.Errorf("applied %+v", applied)
	}
	handlers.Apply(intent) // there is nothing to apply
	if _, err := handlers.Decide(&kernel.Call{Request: kernel.Request{Syscall: schema.ClockGet.Syscall}}); err == nil {
		t.Error("a syscall of another domain was decided")
	}
}

// TestParkedHasNoReply: a call that waits has no outcome yet.
func TestParkedHasNoReply(t *testing.T) {
	t.Parallel()
	handlers := kernel.Bind(schema.Http, httpHandlers(nil, nil)[0], kernel.Step(schema.HTTPFetch.End,
		func(call *kernel.Call, _ *schema.EffectEnd) (schema.Value, error) {
			if !call.Final {
				call.Park(time.Second)
				call.Wake(7)
			}
			return schema.Value(`1`), nil
		}, nil))
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.HTTPFetch.End.Syscall, Input: &schema.EffectEnd{}}}
	if result, err := handlers.Decide(call); err != nil || result.Wait != time.Second || result.Data != nil || len(result.Wakes) != 1 {
		t.Errorf("parked: %+v, %v", result, err)
	}
	call.Final = true
	if result, err := handlers.Decide(call); err != nil || result.Wait != 0 || string(result.Data) != "1" || result.Wakes != nil {
		t.Errorf("decided: %+v, %v", result, err)
	}
}
