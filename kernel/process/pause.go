package process

import (
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// pause answers Process.Pause.
func (d *Domain) pause(call *kernel.Call, in *schema.PauseInput) (out schema.PauseOutput, _ error) {
	pids, err := d.meant(call, in, true)
	if programs := d.withPrograms(pids); programs != nil {
		call.Begin(&kernel.Work{Halt: programs, On: true})
	}
	out.Processes = int64(len(pids))
	return out, err
}

// resume answers Process.Resume.
func (d *Domain) resume(call *kernel.Call, in *schema.PauseInput) (out schema.PauseOutput, _ error) {
	pids, err := d.meant(call, in, false)
	if programs := d.withPrograms(pids); programs != nil {
		call.Begin(&kernel.Work{Halt: programs})
	}
	out.Processes = int64(len(pids))
	return out, err
}

// meant are the living processes that a call is about which are not as it wants them.
func (d *Domain) meant(call *kernel.Call, in *schema.PauseInput, paused bool) ([]int64, error) {
	switch {
	case in.All == (in.TargetPID != nil):
		return nil, kernel.Invalid("target_pid", "must be given, or all, and not both")
	case in.All:
		return d.others(in, paused), nil
	}
	switch p := kernel.Visible(d.table, call, *in.TargetPID); {
	case p == nil:
		return nil, kernel.NoProcess(*in.TargetPID)
	case p.State == terminated:
		return nil, fault.ProcessIsEnded.New("pid %d has ended", *in.TargetPID).With("pid", strconv.FormatInt(*in.TargetPID, 10))
	}
	return d.others(in, paused), nil
}

// others are the living processes of an input that are not as it wants them.
func (d *Domain) others(in *schema.PauseInput, paused bool) (pids []int64) {
	add := func(pid int64) {
		if p, ok := d.table.processes.Get(pid); ok && p.State != terminated && p.Paused != paused {
			pids = append(pids, pid)
		}
	}
	if in.All {
		d.table.processes.Scan(func(pid int64, _ *schema.Descriptor) bool {
			add(pid)
			return true
		})
		return pids
	}
	for _, pid := range d.table.subtree(*in.TargetPID) {
		add(pid)
	}
	return pids
}

func (d *Domain) applyPause(_ *kernel.Entry, in *schema.PauseInput) { d.setPaused(in, true) }

func (d *Domain) applyResume(_ *kernel.Entry, in *schema.PauseInput) { d.setPaused(in, false) }

func (d *Domain) setPaused(in *schema.PauseInput, paused bool) {
	for _, pid := range d.others(in, paused) {
		p, _ := d.table.processes.Get(pid)
		next := *p
		next.Paused = paused
		d.table.processes.Set(pid, &next)
		d.view.touch(pid)
	}
}
