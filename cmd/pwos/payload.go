package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

// maxPayload ends the reading of a stdin that has no end, in bytes. What the kernel takes is less (PROTOCOL 2).
const maxPayload = 64 << 20

// payload is how a value is given on the command line.
type payload struct{ text bool }

func (p *payload) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.text, "string", false, "take the value as a string, even if it is JSON")
}

// payloadHelp says the rules to users of the verbs that take a value.
const payloadHelp = `A value that is JSON is taken as that, anything else is a string; --string makes it a
string whatever it looks like. With - it is read from stdin; of a string there, one
line end at its end is left out.`

// value makes a JSON value of an argument, or of stdin where that is "-".
func (a *app) value(ctx context.Context, cmd *cobra.Command, p payload, arg string) (schema.Value, error) {
	text := []byte(arg)
	if arg == "-" {
		var err error
		if text, err = a.readStdin(ctx); err != nil {
			return nil, err
		}
	}
	if !p.text && schema.Valid(text) {
		return bytes.TrimSpace(text), nil
	}
	if !utf8.Valid(text) {
		return nil, usage(cmd, errors.New("the value is neither JSON nor UTF-8 text"))
	}
	if arg == "-" {
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	}
	return schema.AppendString(nil, string(text)), nil
}

// readStdin reads all of stdin, until ctx ends.
func (a *app) readStdin(ctx context.Context) (text []byte, err error) {
	in, err := newPatientFile(a.stdin)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = in.SetReadDeadline(time.Time{}) }) // fails when closed: nobody reads then
	defer func() {
		stop()
		err = errors.Join(err, in.Close())
	}()
	text, err = io.ReadAll(io.LimitReader(in, maxPayload+1))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("read stdin: %w", err)
	case len(text) > maxPayload:
		return nil, fmt.Errorf("read stdin: more than %d bytes", maxPayload)
	}
	return text, nil
}
