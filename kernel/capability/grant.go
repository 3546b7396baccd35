package capability

import (
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// grant answers Capability.Grant: a living process is granted what the granter may give.
func (r *Registry) grant(call *kernel.Call, in *schema.GrantInput) (kernel.Result, error) {
	token, err := kernel.NewToken(in, r.pools)
	if err != nil {
		return kernel.Result{}, err
	}
	if err := r.living(call, in.PID); err != nil {
		return kernel.Result{}, err
	}
	if err := r.authority(call, "grant to", in.PID); err != nil {
		return kernel.Result{}, err
	}
	if call.PID != kernel.Operator {
		if err := call.Token.Covers(token); err != nil {
			return kernel.Result{}, err
		}
	}
	return answer(token.Token)
}

// grantDefault answers Capability.GrantDefault: the same, with what CAP 3 says a process gets.
func (r *Registry) grantDefault(call *kernel.Call, in *schema.GrantDefaultInput) (kernel.Result, error) {
	resources := in.Resources
	if resources == nil {
		resources = r.pools
	}
	for i, resource := range resources {
		if !slices.Contains(r.pools, resource) {
			return kernel.Result{}, kernel.Invalid(fmt.Sprintf("resources[%d]", i), "is %q, which names no resource: %s", resource, kernel.Pools(r.pools))
		}
	}
	return r.grant(call, kernel.DefaultGrant(in.PID, resources))
}

// endow answers the kernel's Capability.Endow, a step on the way to a process that is not there yet. Whether its parent may
// give as much is for the process domain to say.
func (r *Registry) endow(in *schema.GrantInput) (kernel.Result, error) {
	token, err := kernel.NewToken(in, r.pools)
	if err != nil {
		return kernel.Result{}, err
	}
	return answer(token.Token)
}

// living returns an error unless pid is a process that has not ended.
func (r *Registry) living(call *kernel.Call, pid int64) *schema.Error {
	switch p := kernel.Visible(r.processes, call, pid); {
	case p == nil:
		return unknown(pid)
	case p.State == "TERMINATED":
		return schema.Errorf(schema.Conflict, "pid %d has ended: nothing can be granted to it", pid)
	}
	return nil
}

func unknown(pid int64) *schema.Error {
	return schema.Errorf(schema.NotFound, "no process has pid %d: Process.List shows who is there", pid)
}

// authority returns an error where an agent reaches beyond its own descendants. A grant replaces what was there, so who
// could grant to anybody could take rights away from anybody, its own parent included; over its descendants an agent has
// that power already, since it may end them.
func (r *Registry) authority(call *kernel.Call, verb string, pid int64) *schema.Error {
	if call.PID == kernel.Operator || kernel.Descends(r.processes, pid, call.PID) {
		return nil
	}
	return schema.Errorf(schema.Forbidden, "pid %d may not %s pid %d: it is none of its descendants; the operator may", call.PID, verb, pid)
}
