// Package acp protects an editor from the agent host with which it speaks the Agent Client Protocol (PROTOCOL 11). The host is not
// trusted: of what it sends, only what an editor displays passes. What it wants to do itself, its sandbox and its hook decide; what it
// asks for permission, the kernel decides; and what would have the editor act for it, outside of the sandbox, is refused.
//
// Both sides send lines, each a message of JSON-RPC 2.0, which is read strictly and written again. What is no message of the editor is
// answered with an error, and what is none of the host is left out:
//
//	no JSON, a batch, a line over the limit   the editor gets an error without an id; of the host it is left out
//	the rest of a line at the end             is left out
//	an id that is in flight already           the request is refused with that id
//	a response to no request                  is left out, and so is a second one
package acp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/promptware-os/pwos/schema"
)

// Bounds of the requests that are in flight.
const (
	mostRequests    = 1024 // of the editor
	mostPermissions = 16   // of the host
	mostWaiting     = 64   // messages of the editor that the host has not read
)

// Options say who decides.
type Options struct {
	Host string // the host's name, for texts
	// Reaches returns why a session cannot be in a directory.
	Reaches func(dir string) error
	// Decide returns whether the kernel lets the host do what it asks permission for, and why not.
	Decide func(ctx context.Context, use *Use) (allowed bool, why string)
	// Ended is told when a use that was allowed has ended, as far as the host says; nil: nobody is.
	Ended func(use *Use, failed bool)
	// Note tells the person something, in one line.
	Note func(format string, args ...any)
}

// Door passes on messages between one editor and one host.
type Door struct {
	options Options
	left    chan struct{}

	editor, host sender

	mu       sync.Mutex
	requests map[string]request         // of the editor, in flight
	deciding map[string]*decision       // permissions that the host asks for, by its id
	using    map[using]*Use             // that the kernel is to be told the end of
	asking   map[string]chan<- *message // requests to the editor
	current  string                     // the session of the last prompt
	noted    map[string]bool            // what Note was told of
	workers  sync.WaitGroup
}

// request is one of the editor.
type request struct{ method, session string }

// sender writes whole lines.
type sender struct {
	mu sync.Mutex
	to io.Writer
}

// send writes a line. It fails if the reader has ended, which others see.
func (s *sender) send(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.to.Write(line)
}

// New returns a door.
func New(o Options) *Door {
	return &Door{
		options: o, left: make(chan struct{}),
		requests: make(map[string]request), deciding: make(map[string]*decision), asking: make(map[string]chan<- *message),
		using: make(map[using]*Use), noted: make(map[string]bool),
	}
}

// Left returns a channel that is closed when the editor has ended its output.
func (d *Door) Left() <-chan struct{} { return d.left }

// Serve passes on messages until the host has ended its output. Then it answers what is in flight, and returns; a Read of fromEditor may
// still be waiting. When the editor ends its output, Serve closes toHost, and hosts end then.
func (d *Door) Serve(ctx context.Context, fromEditor io.Reader, toEditor io.Writer, fromHost io.Reader, toHost io.WriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.editor.to, d.host.to = toEditor, toHost
	messages := make(chan *message, mostWaiting) // for the host, which may not read
	go func() {                                  // owned by nobody: no way ends a Read of a terminal or a file
		defer close(messages)
		in := bufio.NewReader(fromEditor)
		for {
			line, err := readLine(in)
			if err != nil && !errors.Is(err, errTooLong) {
				close(d.left)
				return
			}
			m, bad := heard(line, err)
			switch {
			case ctx.Err() != nil:
				return
			case bad != nil:
				d.editor.send(bad.answer(""))
			case m.method == "": // of a question, which waits whatever the host does
				d.answered(m)
			default:
				select {
				case messages <- m:
				default:
					d.refuse(m)
				}
			}
		}
	}()
	d.workers.Go(func() {
		for {
			select {
			case m, more := <-messages:
				if !more {
					_ = toHost.Close() // it may have closed its end
					return
				}
				d.fromEditor(m)
			case <-ctx.Done():
				return
			}
		}
	})
	in := bufio.NewReader(fromHost)
	for {
		line, err := readLine(in)
		switch {
		case errors.Is(err, errTooLong):
			d.note("%s wrote a line that is too long, which was left out", d.options.Host)
		case errors.Is(err, io.EOF):
			err = nil
			fallthrough
		case err != nil:
			cancel()
			_ = toHost.Close() // what waits to be written to it need not be
			d.workers.Wait()
			d.end()
			return err
		default:
			d.fromHost(ctx, line)
		}
	}
}

// heard returns the message of a line, or why there is none.
func heard(line []byte, err error) (*message, *failure) {
	if err != nil {
		return nil, &failure{invalidRequest, err.Error()}
	}
	return parse(line)
}

// refuse answers a message of the editor for which there is no room, since the host does not read.
func (d *Door) refuse(m *message) {
	if m.method == "session/cancel" {
		d.cancel(objectOf(m.params).text("sessionId"))
	}
	if m.id == "" {
		d.note("%s does not read what the editor says, so some of it was left out", d.options.Host)
		return
	}
	d.editor.send((&failure{internalError, d.options.Host + " does not read what the editor says: try again later"}).answer(m.id))
}

// end answers the requests in flight of an editor whose host has ended.
func (d *Door) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.requests {
		d.editor.send((&failure{internalError, d.options.Host + " has ended"}).answer(id))
	}
	clear(d.requests)
}

// note tells the person once.
func (d *Door) note(format string, args ...any) {
	d.mu.Lock()
	told := d.noted[format]
	d.noted[format] = true
	d.mu.Unlock()
	if !told {
		d.options.Note(format, args...)
	}
}

// noFiles are the capabilities of every editor: the host has no other files and terminals than those inside, where it uses them itself.
const noFiles = `{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false}`

// fromEditor handles a line of the editor, which may do all that its user may.
func (d *Door) fromEditor(m *message) {
	if m.id != "" {
		if bad := d.request(m); bad != nil {
			d.editor.send(bad.answer(m.id))
		}
		return
	}
	if m.method == "session/cancel" {
		d.cancel(objectOf(m.params).text("sessionId"))
	}
	d.host.send(m.line())
}

// request passes on a request of the editor, or returns why not.
func (d *Door) request(m *message) *failure {
	params := objectOf(m.params)
	if m.method == "initialize" {
		offer := object{"protocolVersion": schema.Value("1"), "clientCapabilities": schema.Value(noFiles)}
		if info := params["clientInfo"]; info != nil {
			offer["clientInfo"] = info
		}
		m.params = offer.json()
	}
	if bad := d.reaches(params); bad != nil {
		return bad
	}
	session := params.text("sessionId")
	d.mu.Lock()
	_, used := d.requests[m.id]
	full := len(d.requests) >= mostRequests
	if !used && !full {
		d.requests[m.id] = request{m.method, session}
		if m.method == "session/prompt" {
			d.current = session
		}
	}
	d.mu.Unlock()
	switch {
	case used:
		return &failure{invalidRequest, "the id is that of a request in flight"}
	case full:
		return &failure{tooMany, fmt.Sprintf("%d requests are in flight, which is the limit", mostRequests)}
	}
	d.host.send(m.line())
	return nil
}

// reaches returns why a session cannot be in the directories that a request names.
func (d *Door) reaches(params object) *failure {
	dirs := []string{}
	if dir := params.text("cwd"); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range elements(params["additionalDirectories"]) {
		dirs = append(dirs, object{"": dir}.text(""))
	}
	for _, dir := range dirs {
		if err := d.options.Reaches(dir); err != nil {
			return &failure{invalidParams, err.Error()}
		}
	}
	return nil
}

// fromHost handles a line of the host.
func (d *Door) fromHost(ctx context.Context, line []byte) {
	m, bad := parse(line)
	switch {
	case bad != nil:
		d.note("%s wrote something that is no message of ACP, which was left out: %s", d.options.Host, bad.message)
	case m.method == "":
		d.result(m)
	case m.id == "" && m.method == "session/update":
		d.updated(objectOf(m.params))
		d.editor.send(m.line())
	case m.id == "":
		d.note("%s sent notifications other than session/update, which were left out", d.options.Host)
	case m.method == "session/request_permission":
		d.permission(ctx, m)
	default:
		d.host.send((&failure{methodNotFound, "the editor is not asked for " + clip(m.method) + ": use your own tools, which are confined"}).answer(m.id))
	}
}

// result passes on the answer to a request of the editor, without what would have the editor run something.
func (d *Door) result(m *message) {
	d.mu.Lock()
	of, known := d.requests[m.id]
	delete(d.requests, m.id)
	result := objectOf(m.result)
	if session := result.text("sessionId"); known && d.current == "" {
		d.current = session
	}
	var over []using
	for which := range d.using {
		if known && of.method == "session/prompt" && which.session == of.session {
			over = append(over, which)
		}
	}
	d.mu.Unlock()
	for _, which := range over { // its turn has ended
		d.endUse(which, false)
	}
	if !known {
		d.note("%s answered what it was not asked, which was left out", d.options.Host)
		return
	}
	if of.method == "initialize" && m.result != nil { // a way to log in may be a command, which the editor would run
		delete(result, "_meta")
		m.result = result.with("authMethods", schema.Value("[]")).json()
	}
	if why := objectOf(m.failure); string(why["code"]) == strconv.Itoa(authRequired) {
		text := why.text("message") + `: "pwos login" gives the kernel a login for ` + d.options.Host
		m.failure = object{"code": why["code"], "message": quoted(text)}.json()
	}
	d.editor.send(m.line())
}

// clip returns the beginning of a name that the host has made up.
func clip(name string) string {
	const longest = 64
	if len(name) > longest {
		name = name[:longest] + "..."
	}
	return name
}
