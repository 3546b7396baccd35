package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// Options describe the server of a bridge.
type Options struct {
	Name string // of the entry, without mcp/
	// Kernel is a connection that acts as the agent mcp.NAME. Its lines may be as long as answers.
	Kernel *client.Client
	Start  Start
	// Note gets messages about the server, for the agent's log.
	Note    func(format string, args ...any)
	Version string // of this client, reported to servers
	// Patience is the time limit for a server's start; 0: 30 s.
	Patience time.Duration
	// Executable is the program of the server, which the entry may pin by its digest; "" for a remote server.
	Executable string
}

// bridge is the provider of an entry and its tools.
type bridge struct {
	entry  string
	kernel *client.Client
	server *server
	file   string // the executable
	work   sync.WaitGroup

	mu    sync.Mutex
	calls map[string]context.CancelFunc // in flight, by id
}

// Run provides the entry and its tools until ctx or the connection ends, and returns the reason.
func Run(ctx context.Context, o *Options) error {
	entry := "mcp/" + o.Name
	b := &bridge{entry: entry, kernel: o.Kernel, file: o.Executable, calls: make(map[string]context.CancelFunc)}
	pin, err := b.pin(ctx)
	if err != nil {
		return err
	}
	own := *o
	own.Start = func(ctx context.Context) (sdk.Transport, error) {
		if err := b.unchanged(ctx); err != nil {
			return nil, err
		}
		return o.Start(ctx)
	}
	b.server = newServer(entry, &own)
	register, err := schema.SyscallRegister.Encode(Entry(entry, pin))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer b.work.Wait()
	defer cancel()
	b.work.Go(func() { b.server.keep(ctx) })
	return o.Kernel.Subscribe(ctx, schema.Message{Kind: schema.KindCommand, Type: schema.SyscallRegister.Type, Data: register}, func(m schema.Message) error {
		switch m.Type {
		case schema.SyscallRequested:
			in, err := schema.TypeOf[schema.RequestedEvent]().Decode(m.Data)
			if err != nil {
				return err
			}
			call := in.(*schema.RequestedEvent)
			ctx, cancel := context.WithCancel(ctx)
			b.mu.Lock()
			b.calls[call.CallID] = cancel
			b.mu.Unlock()
			b.work.Go(func() {
				defer b.over(call.CallID)
				b.carryOut(ctx, call)
			})
		case schema.SyscallCancelled:
			in, err := schema.TypeOf[schema.CancelledEvent]().Decode(m.Data)
			if err != nil {
				return err
			}
			b.over(in.(*schema.CancelledEvent).CallID)
		}
		return nil
	})
}

// over cancels a call, and removes it from the calls in flight.
func (b *bridge) over(id string) {
	b.mu.Lock()
	cancel := b.calls[id]
	delete(b.calls, id)
	b.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// carryOut runs a call and sends its answer to the kernel.
func (b *bridge) carryOut(ctx context.Context, call *schema.RequestedEvent) {
	answer := &schema.CompleteInput{CallID: call.CallID}
	var err error
	if call.Type == b.entry {
		answer.Data, err = b.offer(ctx, call.Data)
	} else {
		answer.Data, err = b.server.call(ctx, call, b.reporting(ctx, call))
	}
	if ctx.Err() != nil {
		return // the call was canceled
	}
	if err == nil {
		if err = b.answer(ctx, answer); err == nil {
			return
		}
		err = fmt.Errorf("the answer of %s cannot be passed on: %w", call.Type, err)
	}
	answer.Data, answer.DataRef, answer.Error = nil, nil, &schema.ProviderError{Message: clip(err.Error(), longestMessage)}
	if refused, ok := errors.AsType[*away](err); ok && refused.nothing {
		code := int64(http.StatusServiceUnavailable)
		answer.Error.Code = &code
	}
	_, _ = client.Call(ctx, b.kernel, schema.SyscallComplete, answer) // fails if the call is already over
}

// longestAnswer is the longest answer, in bytes, that fits a line of the kernel.
const longestAnswer = schema.MaxEventLine - 4096

// answer sends an answer to the kernel. It stores data that does not fit a line in a blob.
func (b *bridge) answer(ctx context.Context, answer *schema.CompleteInput) error {
	if len(answer.Data) > longestAnswer {
		at, remove, err := b.kernel.PutBlob(answer.Data)
		if err != nil {
			return err
		}
		defer func() { _ = remove() }() // if this fails, the kernel removes the blob later
		answer.Data, answer.DataRef = nil, (*schema.BlobRef)(&at)
	}
	_, err := client.Call(ctx, b.kernel, schema.SyscallComplete, answer)
	return err
}

// progressEvery is the minimum time between two progress reports: the kernel drops more frequent ones.
const progressEvery = 100 * time.Millisecond

// reporting returns a function that reports the progress of a call to the kernel until ctx ends; nil if the caller did
// not request it. If reports are too frequent, only the latest is sent.
func (b *bridge) reporting(ctx context.Context, call *schema.RequestedEvent) func(*schema.ProgressInput) {
	if !call.Progress {
		return nil
	}
	latest := make(chan *schema.ProgressInput, 1)
	b.work.Go(func() {
		for {
			select {
			case in := <-latest:
				if _, err := client.Call(ctx, b.kernel, schema.SyscallProgress, in); err != nil {
					return // the call is over
				}
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(progressEvery):
			case <-ctx.Done():
				return
			}
		}
	})
	return func(in *schema.ProgressInput) {
		select {
		case <-latest:
		default:
		}
		select {
		case latest <- in:
		default: // another report was added first
		}
	}
}

// longestMessage bounds an error's text in bytes.
const longestMessage = 2048

// clip returns a text cut to at most the given number of bytes.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	text = text[:most-3]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "..."
}

// offer answers a call of the entry with a page of the server's offer.
func (b *bridge) offer(ctx context.Context, data schema.Value) (schema.Value, error) {
	in, wrong := schema.TypeOf[OfferInput]().Decode(data)
	if wrong != nil {
		return nil, wrong
	}
	pin, err := b.pin(ctx)
	if err != nil {
		return nil, err
	}
	out := b.server.offer(ctx, in.(*OfferInput).After)
	if pin != "" {
		digest, err := Digest(b.file)
		if err != nil {
			return nil, err
		}
		if digest != pin {
			out.Executable = digest
		}
	}
	return schema.Marshal(out)
}

// pin returns the digest of the accepted executable; "" if the entry has no pin.
func (b *bridge) pin(ctx context.Context) (string, error) {
	described, err := client.Call(ctx, b.kernel, schema.SyscallDescribe, &schema.DescribeInput{Name: b.entry})
	if err != nil {
		return "", err
	}
	return Pinned(described.Input), nil
}

// unchanged returns nil if the executable matches the entry's pin, or is not pinned.
func (b *bridge) unchanged(ctx context.Context) error {
	pin, err := b.pin(ctx)
	if err != nil || pin == "" {
		return err
	}
	digest, err := Digest(b.file)
	if err != nil {
		return err
	}
	if digest != pin {
		name := strings.TrimPrefix(b.entry, "mcp/")
		return fmt.Errorf("%s has changed since it was accepted: %s shows that, and %s accepts it", b.file, Command("diff", name), Command("accept", name))
	}
	return nil
}
