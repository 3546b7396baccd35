package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// home prints the output of pwos without a verb: the kernel's state, and commands to try.
func (a *app) home(ctx context.Context) error {
	s, err := a.inspect(ctx)
	switch {
	case err == nil:
		if err := a.printStatus(s); err != nil {
			return err
		}
	case errors.Is(err, fault.DaemonNotRunning):
		a.Say("%v; the first call starts one", err)
	default:
		return err
	}
	if a.WantsJSON() {
		return nil
	}
	return a.Print(`
try:
  pwos describe                         # what the kernel can do
  pwos call Syscall.Echo message=hello  # one message, one answer
  pwos demo                             # a whole conversation, explained
`)
}

// withLastStart adds to err, if it says that no kernel runs, why the last start by a client failed.
func (a *app) withLastStart(err error) error {
	if !errors.Is(err, fault.DaemonNotRunning) {
		return err
	}
	options, wrong := a.Options()
	if wrong != nil {
		return err
	}
	lines, path := client.LogTail(options)
	if last := lastFailure(lines); last != "" {
		return fmt.Errorf("%w; %s; its log is %s", err, last, path)
	}
	return err
}

func newStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "show the running kernel",
		Long: `status shows the running kernel: its process, its sockets, its response time.
It never starts one: if none runs, it exits with 6, and prints why the last start
failed. It reports if the journal cannot be written, for example on a full disk:
commands are refused until it can. It also lists warnings that need your attention, such as a
file of keys whose mode became unsafe, and agents whose use of a model is not counted, since
their host has a login of its own.`,
		Example: `  pwos status
  pwos status --json`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.inspect(cmd.Context())
			if err != nil {
				return err
			}
			return a.printStatus(s)
		},
	}
}

// kernelInfo is the state of a running kernel, as a client sees it.
type kernelInfo struct {
	pid          int
	address      string // a socket, or tls://HOST:PORT
	eventsSocket string // "": the kernel is on another machine
	syscalls     int
	ping         time.Duration
	condition
	parameters
	copies    []schema.StepReview // that wait to be applied or discarded
	uncounted []uncounted         // agents whose use of a model is not counted
	others    map[string]int64    // number of keys in memory by origin, without the operator's
}

// condition has the problems that a kernel reports.
type condition struct {
	refusing string   // why commands are refused; "" if they are not
	warnings []string // warnings for the operator
}

// parameters are the kernel's start parameters; zero if the caller may not read them.
type parameters struct {
	version string   // version of the running kernel, which may differ from this program's
	origin  string   // the operator's origin
	listen  string   // address for clients on other machines; "": none
	sync    string   // the sync setting: when a command is durable
	sandbox string   // what confines the program of an agent
	gaps    []string // what the sandbox does not prevent
}

// inspect queries the running kernel.
func (a *app) inspect(ctx context.Context) (s kernelInfo, err error) {
	err = a.With(ctx, cli.UsualTimeout, a.DialRunning, func(ctx context.Context, c *client.Client) error {
		types, err := listSyscalls(ctx, c)
		if err != nil {
			return err
		}
		ping, err := measurePing(ctx, c)
		if err != nil {
			return err
		}
		s = kernelInfo{
			pid: c.PID(), address: c.Address(), eventsSocket: c.Places().EventsSocket, syscalls: len(types), ping: ping,
			condition: readCondition(ctx, c), parameters: readParameters(ctx, c), others: readOrigins(ctx, c),
		}
		s.copies, _ = reviews(ctx, c) // the caller may not know them
		s.uncounted = readUncounted(ctx, c)
		delete(s.others, s.origin)
		return nil
	})
	return s, a.withLastStart(err)
}

// readParameters reads the kernel's start parameters, if the caller may.
func readParameters(ctx context.Context, c *client.Client) (p parameters) {
	data, err := cli.Invoke(ctx, c, schema.MemoryGet.Type, &schema.MemoryGetInput{Key: "proc/cmdline"})
	if err != nil {
		return p
	}
	members, _ := view.Members(data)
	p.version, _ = view.Text(members["version"])
	p.origin, _ = view.Text(members["origin"])
	p.listen, _ = view.Text(members["listen"])
	p.sync, _ = view.Text(members["sync"])
	p.sandbox, _ = view.Text(members["sandbox"])
	p.gaps, _ = view.As[[]string](members["sandbox_gaps"])
	return p
}

// readOrigins reads which origins have keys in memory. Only the operator may; otherwise it returns nil.
func readOrigins(ctx context.Context, c *client.Client) map[string]int64 {
	data, err := cli.Invoke(ctx, c, schema.MemoryGet.Type, &schema.MemoryGetInput{Key: "proc/origins"})
	if err != nil {
		return nil
	}
	keys, _ := view.As[map[string]int64](data)
	return keys
}

// readCondition reads whether commands are refused, and the warnings, if the caller may. It is called
// after other queries: these are journaled, so the kernel already knows whether it can write.
func readCondition(ctx context.Context, c *client.Client) (is condition) {
	data, err := cli.Invoke(ctx, c, schema.AuditMetrics.Type, &schema.AuditMetricsInput{})
	if err != nil {
		return is
	}
	members, _ := view.Members(data)
	is.refusing, _ = view.Text(members["refusing"])
	is.warnings, _ = view.As[[]string](members["warnings"])
	return is
}

// durability describes a sync setting.
func durability(sync string) string {
	switch sync {
	case "always":
		return "a command is on disk before it is answered"
	case "interval":
		return "interval: a power cut may lose the last answered commands"
	default:
		return sync
	}
}

// measurePing returns the duration of one round trip.
func measurePing(ctx context.Context, c *client.Client) (time.Duration, error) {
	begin := time.Now()
	_, err := c.Call(ctx, schema.KindQuery, "Syscall.Ping", []byte(`{"payload":null}`))
	return time.Since(begin), err
}

func (a *app) printStatus(s kernelInfo) error {
	local := s.eventsSocket != ""
	o := view.Object(nil).Boolean("running", true)
	if local {
		o = o.Integer("pid", int64(s.pid)).Text("socket", s.address).Text("events_socket", s.eventsSocket)
	} else {
		o = o.Text("address", s.address)
	}
	o = o.Integer("syscalls", int64(s.syscalls)).Text("sync", s.sync).Integer("ping_us", s.ping.Microseconds())
	t := new(view.Table)
	running := a.Style(view.Good, "running")
	if local {
		running += ", process " + strconv.Itoa(s.pid)
	}
	t.Row("kernel", running)
	if s.version != "" {
		o = o.Text("version", s.version)
		t.Row("version", view.Escaped(s.version))
	}
	if s.refusing != "" {
		o = o.Text("refusing", s.refusing)
		t.Row("commands", a.Style(view.Bad, "refused")+", because the journal cannot be written: "+view.Escaped(s.refusing))
	}
	for _, warning := range s.warnings {
		t.Row("warning", a.Style(view.Bad, view.Escaped(warning)))
	}
	if local {
		t.Row("socket", view.Escaped(s.address))
		t.Row("older dialect", view.Escaped(s.eventsSocket))
	} else {
		t.Row("address", view.Escaped(s.address))
	}
	if s.listen != "" {
		o = o.Text("listen", s.listen)
		t.Row("listens", "at "+view.Escaped(s.listen)+", for clients on other machines")
	}
	t.Row("syscalls", strconv.Itoa(s.syscalls))
	if len(s.others) > 0 {
		o = o.Text("origin", s.origin)
		t.Row("origin", view.Escaped(s.origin))
		var list view.Object
		for _, origin := range slices.Sorted(maps.Keys(s.others)) {
			list = list.Integer(origin, s.others[origin])
			t.Row("other memory", fmt.Sprintf("%d keys under %s: %s", s.others[origin], view.Escaped(origin), quote.Line("pwos", "mem", "ls", "--origin", origin)))
		}
		o = o.Raw("other_origins", list.Close())
	}
	if err := addReviews(&o, t, s.copies); err != nil {
		return err
	}
	if err := addUncounted(&o, t, s.uncounted); err != nil {
		return err
	}
	if len(s.warnings) > 0 {
		o = o.Raw("warnings", view.Texts(s.warnings))
	}
	t.Row("durability", durability(s.sync))
	t.Row("answers in", s.ping.Round(time.Microsecond).String())
	if s.sandbox != "" {
		o = o.Text("sandbox", s.sandbox).Raw("sandbox_gaps", view.Texts(s.gaps))
		t.Row("sandbox", view.Escaped(s.sandbox))
	}
	for _, gap := range s.gaps {
		t.Row("not bounded", view.Escaped(gap))
	}
	return a.PrintEither(o.Close(), t)
}
