package process

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Kernels are the other kernels of the cluster. Its methods are safe for concurrent use; only Decide calls them.
type Kernels interface {
	// Reach returns why no call can be made at a kernel, nil if one can.
	Reach(kernel string) *fault.Fault
}

// SeeKernels sets who the other kernels are. Call it before the domain decides anything.
func (d *Domain) SeeKernels(k Kernels) { d.kernels = k }

// Errand is the effect of a Syscall.Spawn or a Syscall.Terminate at another kernel. The entry of its intent holds all of it.
type Errand struct{ schema.Errand }

// Kept implements kernel.Keeper.
func (e *Errand) Kept() (schema.Value, error) { return schema.Marshal(&e.Errand) }

var errandType = sync.OnceValue(schema.TypeOf[schema.Errand])

const (
	// maxErrands bounds the calls for one kernel without outcome, and maxErrandsEach those of one agent among them.
	maxErrands, maxErrandsEach = 64, 16
	// maxServed is how many calls of another kernel are remembered; of older ones it is only known that they are old. That kernel
	// makes none whose number is window ahead of one without outcome, so that none of those is old.
	maxServed, window = 1024, 1000
	// maxSpawned bounds the processes at other kernels of which it is known who spawned them.
	maxSpawned = 10_000
	// maxErrand bounds the data of a call in bytes, so that it fits a message of the bus.
	maxErrand = 900_000
)

// abroad is the state that concerns other kernels. What a slice holds is not changed: a snapshot shares it.
type abroad struct {
	last    int64                             // number of the latest call for another kernel
	outbox  *btree.Map[int64, *schema.Errand] // those without outcome, by number
	spawned []spawnedAbroad                   // processes at other kernels, the oldest first
	served  []served                          // by kernel: the calls of other kernels that were made here
}

// spawnedAbroad is a process at another kernel, and the process here that spawned it.
type spawnedAbroad struct {
	Kernel string `json:"kernel"`
	PID    int64  `json:"pid"`
	By     int64  `json:"by"`
}

// served are the latest processes that another kernel had spawned here.
type served struct {
	Kernel   string  `json:"kernel"`
	Instance string  `json:"instance"`
	Epoch    int64   `json:"epoch"`
	Floor    int64   `json:"floor"` // calls up to this number are old
	Done     []spawn `json:"done"`
}

// spawn is a process that was spawned for another kernel.
type spawn struct {
	Number int64  `json:"number"`
	PID    int64  `json:"pid"`
	Name   string `json:"name"`
}

func newAbroad() abroad { return abroad{outbox: btree.NewMap[int64, *schema.Errand](0)} }

func (a *abroad) copied() abroad {
	return abroad{last: a.last, outbox: a.outbox.Copy(), spawned: a.spawned, served: a.served}
}

// save writes the parts of a snapshot.
func (a *abroad) save(yield func(record) bool) {
	more := true
	a.outbox.Scan(func(_ int64, e *schema.Errand) bool {
		more = yield(record{Errand: e})
		return more
	})
	for part := range slices.Chunk(a.spawned, 256) {
		more = more && yield(record{Spawned: part})
	}
	for i := range a.served {
		more = more && yield(record{Served: &a.served[i]})
	}
}

func (a *abroad) restore(r *record) {
	if r.Next > 0 {
		a.last = r.Errands
	}
	if r.Errand != nil {
		a.outbox.Set(r.Errand.Number, r.Errand)
	}
	a.spawned = append(a.spawned, r.Spawned...)
	if r.Served != nil {
		a.served = append(a.served, *r.Served)
	}
}

// Errands returns the calls for other kernels that have no outcome, in their order. Call it before the kernel has the domain.
func (d *Domain) Errands() []*schema.Errand { return d.abroad.outbox.Values() }

// spawnAbroad decides a Syscall.Spawn at another kernel. What the child may do is limited by what its spawner may do here; that
// kernel limits it by what its members file says of this one.
func (d *Domain) spawnAbroad(call *kernel.Call, in *schema.SpawnInput) (*Errand, error) {
	if err := d.able(call.PID); err != nil {
		return nil, err
	}
	if err := checkAgentID("child_agent_id", in.ChildAgentID); err != nil {
		return nil, err
	}
	if err := kernel.CheckName("intent", said(in.Intent, "")); err != nil {
		return nil, err
	}
	if err := d.checkProgramAbroad(call, &in.Program); err != nil {
		return nil, err
	}
	child := *in
	child.Target, child.Kernel = schema.Target{}, nil
	e := &Errand{schema.Errand{Spawn: &child}}
	if c := in.Capabilities; c != nil {
		switch {
		case c.Budget != nil:
			return nil, kernel.Invalid("capabilities.budget", "is a budget of this kernel: another one does not draw on it")
		case c.ExpiresAtTick != nil && *c.ExpiresAtTick < call.Tick:
			return nil, kernel.Invalid("capabilities.expires_at_tick", "has passed: it is tick %d", call.Tick)
		}
	}
	if call.PID != kernel.Operator {
		grant, err := d.grant(call, call.PID, in.Capabilities)
		if err != nil {
			return nil, err
		}
		e.Default = in.Capabilities == nil
		child.Capabilities = &schema.SpawnCapability{
			AllowedSyscalls: grant.AllowedSyscalls, ResourceQuotas: grant.ResourceQuotas, ExpiresAtTick: grant.ExpiresAtTick, HTTP: grant.HTTP,
		}
	}
	return d.errand(call, *in.Kernel, e)
}

// checkProgramAbroad refuses a program that another kernel cannot start for this one.
func (d *Domain) checkProgramAbroad(call *kernel.Call, p *schema.Program) *fault.Fault {
	if err := d.checkProgram(call, p); err != nil {
		return err
	}
	for _, member := range []struct {
		name  string
		given bool
	}{{"cwd", p.Cwd != nil}, {"snapshot", p.Snapshot != nil}, {"stdio", p.Stdio != nil}, {"stderr", p.Stderr != nil}, {"sign", p.Sign != nil}, {"secrets", p.Secrets != nil}, {"logins", p.Logins != nil}, {"upstream", p.Upstream != nil}} {
		if member.given {
			return kernel.Invalid(member.name, "is for programs of this kernel: only the operator of the other one may choose it there")
		}
	}
	return nil
}

// terminateAbroad decides a Syscall.Terminate at another kernel. An agent ends what it or its descendants have spawned there.
func (d *Domain) terminateAbroad(call *kernel.Call, in *schema.TerminateInput) (*Errand, error) {
	if err := d.able(call.PID); err != nil {
		return nil, err
	}
	if call.PID != kernel.Operator {
		at := slices.IndexFunc(d.abroad.spawned, func(s spawnedAbroad) bool { return s.Kernel == *in.Kernel && s.PID == in.TargetPID })
		if at < 0 || d.abroad.spawned[at].By != call.PID && !kernel.Descends(d.table, d.abroad.spawned[at].By, call.PID) {
			return nil, fault.CapabilityNotYours.New("pid %d may not terminate pid %d of the kernel %s", call.PID, in.TargetPID, *in.Kernel).
				WithFix("a process ends what it has spawned there, or its descendants have").With("pid", strconv.FormatInt(in.TargetPID, 10))
		}
	}
	target := *in
	target.Target, target.Kernel = schema.Target{}, nil
	return d.errand(call, *in.Kernel, &Errand{schema.Errand{Terminate: &target}})
}

// errand completes a call for another kernel, if there is room for one.
func (d *Domain) errand(call *kernel.Call, to string, e *Errand) (*Errand, error) {
	if d.kernels == nil {
		return nil, fault.ClusterOff.New("this kernel is in no cluster, so that it has no way to the kernel %q: set cluster.name and cluster.bus in its configuration", to)
	}
	if why := d.kernels.Reach(to); why != nil {
		return nil, why
	}
	all, own, oldest := 0, 0, d.abroad.last+1
	d.abroad.outbox.Scan(func(number int64, other *schema.Errand) bool {
		if other.Kernel == to {
			oldest = min(oldest, number)
			all++
		}
		if other.PID == call.PID {
			own++
		}
		return true
	})
	if all >= maxErrands || d.abroad.last+1-oldest >= window || call.PID != kernel.Operator && own >= maxErrandsEach {
		return nil, fault.ClusterFull.New("calls for the kernel %s wait for their outcome, as many as may: %d, %d of them of pid %d", to, all, own, call.PID)
	}
	e.Number, e.Kernel, e.PID = d.abroad.last+1, to, call.PID
	e.Causation, e.Correlation = call.Message.Meta.ID, call.Message.Meta.Correlation
	if kept, err := e.Kept(); err != nil || len(kept) > maxErrand {
		return nil, fault.ClusterTooLarge.New("the data of the call has %d bytes; for another kernel it may have %d", len(kept), maxErrand)
	}
	return e, nil
}

// applyErrand keeps a call for another kernel until it is settled.
func (d *Domain) applyErrand(e *kernel.Entry) {
	errand := kernel.Reply[schema.Errand](&kernel.Entry{Data: bytes.Clone(e.Data)}, errandType())
	d.abroad.last = errand.Number
	d.abroad.outbox.Set(errand.Number, errand)
}

func (d *Domain) applySettle(_ *kernel.Entry, in *schema.ErrandSettled) {
	d.abroad.outbox.Delete(in.Number)
}

// applySpawnedAbroad records the spawner of a process at another kernel.
func (d *Domain) applySpawnedAbroad(e *kernel.Entry, in *schema.EffectEnd) {
	out := kernel.Reply[schema.SpawnOutput](e, schema.SyscallSpawn.Output())
	list := append(d.abroad.spawned, spawnedAbroad{out.Kernel, out.ChildPID, in.PID})
	d.abroad.spawned = list[max(0, len(list)-maxSpawned):]
}

func (d *Domain) applyEndedAbroad(e *kernel.Entry, _ *schema.EffectEnd) {
	out := kernel.Reply[schema.TerminateOutput](e, schema.SyscallTerminate.Output())
	left := make([]spawnedAbroad, 0, len(d.abroad.spawned))
	for _, s := range d.abroad.spawned {
		if s.Kernel != out.Kernel || s.PID != out.TargetPID {
			left = append(left, s)
		}
	}
	d.abroad.spawned = left
}

// ErrandName is the metadata of a call that is made for another kernel: its name, its instance, its epoch and the number.
func ErrandName(kernel, instance string, epoch, number int64) string {
	return fmt.Sprintf("%s/%s/%d/%d", kernel, instance, epoch, number)
}

// errandOf reads what ErrandName has written for a call of the process of another kernel; ok is false if there is nothing.
func (d *Domain) errandOf(pid int64, name string) (from served, number int64, ok bool) {
	p, found := d.table.processes.Get(pid)
	if name == "" || !found || p.ParentPID != kernel.Operator || !strings.HasPrefix(p.Intent, KernelIntent) {
		return from, 0, false
	}
	parts := strings.Split(name, "/")
	if len(parts) != 4 {
		return from, 0, false
	}
	epoch, err := strconv.ParseInt(parts[2], 10, 64)
	number, failed := strconv.ParseInt(parts[3], 10, 64)
	return served{Kernel: parts[0], Instance: parts[1], Epoch: epoch}, number, err == nil && failed == nil
}

func (s *served) same(other *served) bool {
	return s.Kernel == other.Kernel && s.Instance == other.Instance && s.Epoch == other.Epoch
}

// find returns what was done for a call of another kernel; old says that it would not be remembered.
func find(list []served, from *served, number int64) (done *spawn, old bool) {
	for i := range list {
		if s := &list[i]; s.same(from) {
			at := slices.IndexFunc(s.Done, func(one spawn) bool { return one.Number == number })
			if at >= 0 {
				return &s.Done[at], false
			}
			return nil, number <= s.Floor
		} else if s.Kernel == from.Kernel && s.Instance == from.Instance && s.Epoch > from.Epoch {
			return nil, true // of a copy of that kernel from before it was restored
		}
	}
	return nil, false
}

// fresh refuses a call of another kernel that was made before, so that it is never done twice.
func (d *Domain) fresh(call *kernel.Call) *fault.Fault {
	from, number, ok := d.errandOf(call.PID, call.Message.Meta.Errand)
	if !ok {
		return nil
	}
	if done, old := find(d.abroad.served, &from, number); done != nil || old {
		return fault.ClusterReplayed.New("the call %d of the kernel %s was made before", number, from.Kernel)
	}
	return nil
}

// serve remembers a child that another kernel has spawned.
func (d *Domain) serve(e *kernel.Entry, child *schema.Descriptor) {
	from, number, ok := d.errandOf(e.PID, e.Meta.Errand)
	if !ok {
		return
	}
	at := slices.IndexFunc(d.abroad.served, func(s served) bool { return s.Kernel == from.Kernel })
	list := slices.Clone(d.abroad.served)
	if at < 0 {
		at, list = len(list), append(list, from)
	} else if !list[at].same(&from) {
		list[at] = from
	}
	s := &list[at]
	s.Done = append(slices.Clone(s.Done), spawn{number, child.PID, child.AgentID})
	if len(s.Done) > maxServed {
		oldest := slices.MinFunc(s.Done, func(a, b spawn) int { return int(a.Number - b.Number) }).Number
		s.Floor = max(s.Floor, oldest)
		s.Done = slices.DeleteFunc(s.Done, func(one spawn) bool { return one.Number == oldest })
	}
	d.abroad.served = list
}

// Served returns the process that a call of another kernel has spawned here, if it has, as last published. It may be called at
// any time from any goroutine.
func (v *Processes) Served(kernel, instance string, epoch, number int64) (out schema.SpawnOutput, ok bool) {
	list := v.served.Load()
	if list == nil {
		return out, false
	}
	done, _ := find(*list, &served{Kernel: kernel, Instance: instance, Epoch: epoch}, number)
	if done == nil {
		return out, false
	}
	return schema.SpawnOutput{ChildPID: done.PID, ChildAgentID: done.Name}, true
}
