package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/export"
	"github.com/promptware-os/pwos/internal/version"
)

func newExport(a *app) *cobra.Command {
	return cli.Group("export", "export the record to other systems",
		`export reads the record of all calls and writes each entry as a line of JSON, as a
CloudEvent, or as a span of OpenTelemetry. Each has an id that is unique among all
kernels: the instance, the epoch and the number of the entry.

The data of calls and of their answers is left out unless --arguments is given.
It is redacted as it is in the journal. An agent exports what it may see.`,
		`  pwos export jsonl --to record.jsonl
  pwos export jsonl --to record.jsonl --follow`,
		newExportJSONL(a), newExportCloudEvents(a), newExportOTLP(a))
}

// exporting holds the flags that all export verbs share.
type exporting struct {
	app       *app
	follow    bool
	arguments bool
	cursor    string
}

func (e *exporting) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&e.follow, "follow", false, "then export new entries until interrupted, also across restarts of the kernel")
	cmd.Flags().BoolVar(&e.arguments, "arguments", false, "include the data of calls and of their answers")
	cmd.Flags().StringVar(&e.cursor, "cursor", "", "file that stores the export's position, to continue from there")
}

// to exports to the sink that open returns. after is the position stored in the sink; if it is zero, the cursor file applies.
func (e *exporting) to(ctx context.Context, open func() (sink export.Sink, after export.Position, err error)) (err error) {
	options := export.Options{
		Live: e.follow, Arguments: e.arguments,
		Notice: func(text string) { e.app.Say("%s", text) },
		Dial: func(ctx context.Context, again bool) (*client.Client, error) {
			if again {
				return e.app.DialRunning(ctx)
			}
			return e.app.Dial(ctx)
		},
	}
	if e.cursor != "" {
		cursor, err := export.OpenCursor(e.cursor)
		if err != nil {
			return err
		}
		defer cli.CloseInto(&err, cursor)
		options.After, options.Moved = cursor.At(), cursor.Move
	}
	sink, after, err := open()
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, sink)
	if after != (export.Position{}) {
		options.After = after
	}
	dial := options.Dial
	options.Dial = func(ctx context.Context, again bool) (*client.Client, error) {
		c, err := dial(ctx, again)
		if err != nil || again {
			return c, err
		}
		if err := e.app.sayArchivedAfter(ctx, c, int64(options.After.Seq)); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return c, nil
	}
	options.Sink = sink
	ctx, cancel := e.app.Bound(ctx, 0)
	defer cancel()
	return export.Run(ctx, options)
}

// lines opens a file of lines, or stdout if path is "".
func (e *exporting) lines(path string, format export.Format) (export.Sink, export.Position, error) {
	if path == "" {
		return &export.Stream{To: e.app.Stdout, Format: format}, export.Position{}, nil
	}
	file, err := export.OpenFile(path, format)
	if err != nil {
		return nil, export.Position{}, err
	}
	return file, file.At(), nil
}

func newExportJSONL(a *app) *cobra.Command {
	e := &exporting{app: a}
	var to string
	cmd := &cobra.Command{
		Use:   "jsonl",
		Short: "export the record as lines of JSON",
		Long: `jsonl writes a line of JSON for each entry of the record, to stdout or to a file:
{"id":"INSTANCE/EPOCH/SEQ","instance":…,"epoch":…,"seq":…,"entry":{…}}, where entry has
the form of "pwos audit log".

A file given with --to is its own cursor: the same command continues after its last line,
and no entry is written twice, even if the export was killed. With --cursor too, an
empty file continues where the previous one ended. For stdout, --cursor stores the position
of the export; after a kill some lines are repeated, with the same id.

Exit status: 6 no kernel, 8 another export uses the file or the cursor, or it belongs to
another kernel, or it is not an export.`,
		Example: `  pwos export jsonl --to record.jsonl --follow
  pwos export jsonl --cursor ~/seen | jq -c 'select(.entry.success | not)'`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("to") && to == "" {
				return cli.Usage(cmd, errors.New("--to needs the name of a file"))
			}
			return e.to(cmd.Context(), func() (export.Sink, export.Position, error) { return e.lines(to, export.JSONL) })
		},
	}
	e.flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "file to append to (default: stdout)")
	return cmd
}

func newExportCloudEvents(a *app) *cobra.Command {
	e := &exporting{app: a}
	var to, headers string
	cmd := &cobra.Command{
		Use:   "cloudevents",
		Short: "export the record as CloudEvents",
		Long: `cloudevents writes each entry of the record as an event of the CloudEvents specification
1.0, in JSON: its id is INSTANCE/EPOCH/SEQ, its source urn:pwos:INSTANCE, its type pwos.TYPE,
and data is the entry, in the form of "pwos audit log".

Events go to stdout or to a file, a line each, as with "pwos export jsonl"; or, with the
URL of a receiver, as POST requests, one after the other. If a receiver is unreachable or
busy, requests are repeated, without --follow for one minute. With --cursor the export
continues where it ended; after a kill the last events are repeated, with the same id.

Exit status: 1 the receiver refuses an event, 6 no kernel, 7 the receiver is unreachable,
8 another export uses the file or the cursor, it belongs to another kernel, or it
is not an export.`,
		Example: `  pwos export cloudevents --to https://events.example/in --headers headers.txt --cursor ~/sent --follow
  pwos export cloudevents --to record.events`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("to") && to == "" {
				return cli.Usage(cmd, errors.New("--to needs the name of a file, or the URL of a receiver"))
			}
			if !strings.Contains(to, "://") {
				if headers != "" {
					return cli.Usage(cmd, errors.New("--headers needs --to URL"))
				}
				return e.to(cmd.Context(), func() (export.Sink, export.Position, error) { return e.lines(to, export.CloudEvents) })
			}
			receiver, err := e.receiver(to, headers)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return e.to(cmd.Context(), func() (export.Sink, export.Position, error) {
				sink, err := export.NewWebhook(receiver)
				return sink, export.Position{}, err
			})
		},
	}
	e.flags(cmd)
	receiverFlags(cmd, &to, &headers, "file to append to, or URL of a receiver (default: stdout)")
	return cmd
}

func newExportOTLP(a *app) *cobra.Command {
	e := &exporting{app: a}
	var to, headers string
	cmd := &cobra.Command{
		Use:   "otlp",
		Short: "export the record as spans to an OpenTelemetry collector",
		Long: `otlp sends each call of the record as a span, with OTLP over HTTP: its trace is the call's
correlation, its parent the call that caused it. The ids are made from the record, so a span
that is sent again is the same span. Tools, MCP servers and models have the attributes of
OpenTelemetry's conventions; pwos.record.id is INSTANCE/EPOCH/SEQ. A call with an effect is
sent once the effect has ended.

Without --to, the collector is that of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318. Headers may also be in
OTEL_EXPORTER_OTLP_HEADERS. A collector that is away or busy is asked again; without --follow
that ends after a minute. --cursor keeps how far the export has come.

Exit status: 1 the collector refuses spans, 6 no kernel, 7 the collector is away, 8 another
export uses the cursor, or it is another kernel's.`,
		Example: `  pwos export otlp --cursor ~/traced --follow
  pwos export otlp --to https://collector.example:4318 --headers headers.txt`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				to = collector()
			}
			receiver, err := e.receiver(to, headers)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if err := addHeaders(receiver.Header, os.Getenv("OTEL_EXPORTER_OTLP_HEADERS")); err != nil {
				return cli.Usage(cmd, err)
			}
			return e.to(cmd.Context(), func() (export.Sink, export.Position, error) {
				sink, err := export.NewOTLP(receiver, version.Build())
				return sink, export.Position{}, err
			})
		},
	}
	e.flags(cmd)
	receiverFlags(cmd, &to, &headers, "URL of the collector; one without a path means /v1/traces")
	return cmd
}

// collector returns the URL for traces from the environment, as OpenTelemetry specifies it.
func collector() string {
	if to := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); to != "" {
		return to
	}
	if to := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); to != "" {
		return strings.TrimSuffix(to, "/") + "/v1/traces"
	}
	return "http://localhost:4318/v1/traces"
}

// addHeaders adds headers in the form of OTEL_EXPORTER_OTLP_HEADERS: NAME=VALUE,NAME=VALUE, with VALUE percent-encoded. It does not
// replace an existing header.
func addHeaders(to http.Header, list string) error {
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" || strings.ContainsAny(value, "\r\n") {
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS is not of the form NAME=VALUE,NAME=VALUE") // the list may contain a secret
		}
		if to.Get(name) == "" {
			to.Set(name, value)
		}
	}
	return nil
}

// receiverFlags adds the flags --to and --headers.
func receiverFlags(cmd *cobra.Command, to, headers *string, usage string) {
	cmd.Flags().StringVar(to, "to", "", usage)
	cmd.Flags().StringVar(headers, "headers", "", "file of headers that each request has, such as Authorization: Bearer …, a line each")
}

// receiver returns the receiver of an export. If it is unreachable, requests are retried for a minute; with --follow,
// until the export is interrupted.
func (e *exporting) receiver(to, headers string) (r export.Receiver, err error) {
	if err := export.CheckReceiver(to); err != nil {
		return r, fmt.Errorf("--to: %w", err)
	}
	r = export.Receiver{URL: to, Notice: func(text string) { e.app.Say("%s", text) }}
	if !e.follow {
		r.Patience = time.Minute
	}
	r.Header, err = headersIn(headers)
	return r, err
}

// headersIn reads headers from a file; "" means none. They are in a file because a command line is visible to other users.
func headersIn(path string) (http.Header, error) {
	if path == "" {
		return make(http.Header), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--headers: %w", err)
	}
	header, err := textproto.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(bytes.TrimSpace(text)), strings.NewReader("\r\n\r\n")))).ReadMIMEHeader()
	if err != nil {
		return nil, fmt.Errorf("--headers: %s has other lines than NAME: VALUE", path) // err quotes a line, which may be a secret
	}
	return http.Header(header), nil
}
