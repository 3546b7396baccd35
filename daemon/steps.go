package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/execs"
	"github.com/promptware-os/pwos/effect/prompts"
	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/host/programs"
	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// keepSteps begins to keep the steps of agents. It must be called before the first program starts.
func (d *Daemon) keepSteps() (err error) {
	if d.once {
		return nil // it runs no programs
	}
	at := d.config.Steps
	d.prompts = &prompts.Keeper{
		Dir: d.promptsDir(), Off: d.config.Record.Prompts == config.Off, Of: func(pid int64) string {
			if p := d.state.Processes.Processes().Process(pid); p != nil {
				return p.AgentID
			}
			return ""
		},
	}
	d.trees, err = trees.New(trees.Config{
		Settings: trees.Settings{
			Off: d.config.Record.Steps == config.Off, Keep: time.Duration(at.Keep), KeepBytes: at.KeepBytes,
			MaxFiles: at.MaxFiles, MaxBytes: at.MaxBytes, MaxFile: at.FileBytes,
		},
		Dir: d.stepsDir(), Copies: filepath.Join(real(d.config.StateDir), "reviews"), Kernel: d.kernel, Agents: started{d.programs, &d.execs},
		Processes: d.state.Processes.Processes(), View: d.state.Steps.View, Ask: d.askHeld, Log: d.log.With("component", "steps"),
		Prompts: d.prompts,
	})
	if err == nil {
		d.state.Steps.Serve(d.trees)
		d.state.Processes.SetExplainer(d.explain)
	}
	return err
}

// started tells package trees of the programs of agents.
type started struct {
	*programs.Programs
	execs *execs.Keeper
}

// longestProgram bounds a program in the record of a step, in bytes.
const longestProgram = 400

// Started implements trees.Agents. The agent's program itself is in the entry of its start.
func (s started) Started(pid int64) (out schema.StepItems) {
	list, dropped := s.execs.Take(pid)
	out.Count = int64(dropped)
	for i := range list {
		r := &list[i]
		if r.First || s.hook(r) {
			continue
		}
		out.Count++
		if r.Refused != "" {
			out.Refused++
		}
		if len(out.Items) == schema.MaxStepItems {
			continue
		}
		line := clip.Text(r.Line(), longestProgram)
		switch {
		case r.Refused != "":
			line += " (refused)"
		case r.Missing:
			line += " (not found)"
		case r.Hidden:
			line += " (unreadable)"
		}
		out.Items = append(out.Items, line)
	}
	return out
}

// hook reports whether a program is a hook of this kernel's: it is not what the agent does.
func (started) hook(r *execs.Record) bool {
	self, err := os.Executable()
	return err == nil && r.Refused == "" && filepath.Dir(r.Path) == filepath.Dir(real(self)) && len(r.Args) > 2 && r.Args[1] == "hook" && r.Args[2] == "run"
}

// maker returns what is known of the process that made a connection.
func (d *Daemon) maker(pid int64, client, server netip.AddrPort) (of schema.NetMaker) {
	program, started, ok := d.programs.Maker(pid, client, server)
	if ok {
		of.Program, of.Step = clip.Text(strings.ToValidUTF8(program, "\uFFFD"), longestPath), d.calls.StepOf(pid, started)
	}
	return of
}

// longestPath bounds the file of a program, in bytes.
const longestPath = 4096

// cause returns the id of the message that began the step which made a connection.
func (d *Daemon) cause(pid int64, request any) string {
	_, by := placeOf(request)
	if by.Step == "" {
		return ""
	}
	return d.calls.Message(pid, by.Step)
}

// connected notes where an agent connects to, for the step that made the connection.
func (d *Daemon) connected(pid int64, request any, refused bool) {
	where, by := placeOf(request)
	if where == "" {
		return
	}
	if by.Program != "" {
		where = clip.Text(where+" by "+quote.Line(by.Program), longestProgram)
	}
	d.trees.Connected(pid, trees.Connection{Where: where, Refused: refused, Known: by.Program != "", Step: by.Step})
}

// review gives a program the copy that it works on in place of a directory.
func (d *Daemon) review(c *host.Command, p *schema.Program) error {
	if d.trees == nil || p.Sandbox == nil || p.Sandbox.Review == nil {
		return nil
	}
	dir := ""
	if p.Cwd != nil {
		dir = c.Dir
	}
	project, copied, err := d.trees.Review(*p.Sandbox.Review, dir, homeOf(c))
	if err == nil {
		c.Review = &host.Place{Source: copied, Target: project}
	}
	return err
}

// homeOf returns the home of a program's user; "": none is known.
func homeOf(c *host.Command) string {
	home, _ := os.UserHomeDir() // "" means that no home is there
	if c.User != nil {
		home = c.User.Home
	}
	return real(home)
}

// writableDirs returns the directories that a program may write, without those in the kernel's own.
func (d *Daemon) writableDirs(c *host.Command) []string {
	dirs, state := []string{c.Dir}, real(d.config.StateDir)
	if c.Sandbox == host.SandboxOff {
		return dirs
	}
	for _, path := range c.Write {
		if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.HasPrefix(path, state+"/") {
			dirs = append(dirs, real(path))
		}
	}
	return dirs
}

// cover keeps the steps of the directories that a program may write.
func (d *Daemon) cover(c *host.Command, p *schema.Program) {
	if d.trees == nil || c.Review == nil && (p.Cwd == nil || c.ReadOnly) {
		return
	}
	dirs := d.writableDirs(c)
	if r := c.Review; r != nil {
		inside := func(dir string) bool { return dir == r.Target || strings.HasPrefix(dir, r.Target+"/") }
		dirs = append(slices.DeleteFunc(dirs, func(dir string) bool { return inside(dir) || dir == c.Dir && (p.Cwd == nil || c.ReadOnly) }), r.Source)
	}
	var copies []string
	for path, copied := range c.Copies {
		if copied != path { // else it writes there itself
			copies = append(copies, path)
		}
	}
	entered := trees.Newcomer{
		PID: c.PID, Agent: c.AgentID, Dirs: dirs, Copies: copies, Home: homeOf(c),
		Holds: c.Sandbox != host.SandboxOff, Masked: d.programs.Means.Mounts, Writes: c.Write,
	}
	c.Away = func(name string) { d.trees.Away(c.PID, name) }
	for _, why := range d.trees.Enter(entered) {
		d.log.Info("steps are not kept", "pid", c.PID, "directory", why)
	}
}

// errNoSteps is the error of a kernel that serves one call: it runs no programs.
var errNoSteps = fault.KernelUnsupported.New("this kernel keeps no steps")

func (d *Daemon) beginStep(ctx context.Context, job *kernel.Job, in *schema.StepBeginInput) (schema.StepBeginOutput, error) {
	if d.trees == nil {
		return schema.StepBeginOutput{}, errNoSteps
	}
	out, err := d.trees.Begin(ctx, job, in)
	name := ""
	if out.Step > 0 {
		name = fmt.Sprintf("%s:%d", out.Agent, out.Step)
	}
	d.calls.Begin(job.PID, step.KeyOf(in.Host, in.Session, in.Tool, in.Use), name, job.ID)
	return out, err
}

func (d *Daemon) submitPrompt(ctx context.Context, job *kernel.Job, in *schema.PromptSubmitInput) (schema.PromptSubmitOutput, error) {
	if d.trees == nil {
		return schema.PromptSubmitOutput{}, errNoSteps
	}
	return d.prompts.Submit(ctx, job, in)
}

func (d *Daemon) endStep(ctx context.Context, job *kernel.Job, in *schema.StepEndInput) (schema.StepEndOutput, error) {
	if d.trees == nil {
		return schema.StepEndOutput{}, errNoSteps
	}
	out, err := d.trees.End(ctx, job, in)
	refused := d.calls.End(job.PID, in)
	out.Refused, out.More = refused.List, refused.More
	return out, err
}

func (d *Daemon) undoSteps(ctx context.Context, job *kernel.Job, do *step.Undo) (schema.StepUndoOutput, error) {
	if d.trees == nil {
		return schema.StepUndoOutput{}, errNoSteps
	}
	return d.trees.Undo(ctx, job, do)
}

func (d *Daemon) redactStep(ctx context.Context, job *kernel.Job, do *schema.StepRedactInput) (schema.StepRedactOutput, error) {
	if d.trees == nil {
		return schema.StepRedactOutput{}, errNoSteps
	}
	return d.trees.Redact(ctx, job, do)
}

func (d *Daemon) applyReview(ctx context.Context, job *kernel.Job, do *schema.ReviewApplyInput) (schema.ReviewOutput, error) {
	if d.trees == nil {
		return schema.ReviewOutput{}, errNoSteps
	}
	return d.trees.Apply(ctx, job, do)
}

func (d *Daemon) discardReview(ctx context.Context, job *kernel.Job, do *schema.ReviewDiscardInput) (schema.ReviewOutput, error) {
	if d.trees == nil {
		return schema.ReviewOutput{}, errNoSteps
	}
	return d.trees.Discard(ctx, job, do)
}
