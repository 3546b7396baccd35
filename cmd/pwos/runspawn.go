package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// spawn makes the kernel start the program, and returns the PID. It ignores the end of ctx: otherwise an agent with an
// unknown PID could be left running.
func (j *job) spawn(ctx context.Context, c *client.Client) (pid int64, err error) {
	patience := cli.UsualTimeout
	if j.profile.Review {
		patience = copyTime
	}
	patient, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), patience, cli.ErrTimeout)
	defer cancel()
	if err := ruled(patient, c, j.profile); err != nil {
		return 0, err
	}
	if j.input.Capabilities, err = j.grant(patient, c); err != nil {
		return 0, err
	}
	out, err := cli.InvokeAs(patient, c, schema.SyscallSpawn, j.named(j.input.ChildAgentID))
	for n := 2; j.unnamed && taken(err) && n <= mostAlike; n++ {
		out, err = cli.InvokeAs(patient, c, schema.SyscallSpawn, j.named(fmt.Sprintf("%s-%d", j.input.ChildAgentID, n)))
	}
	if err == nil && j.git != nil {
		err = j.git.Started(out.ChildPID)
	}
	return out.ChildPID, err
}

// named returns the input of a spawn of the agent under a name, which its copy to review has too.
func (j *job) named(name string) *schema.SpawnInput {
	input := j.input
	input.ChildAgentID = name
	if j.profile.Review {
		sandbox := schema.Sandbox{}
		if input.Program.Sandbox != nil {
			sandbox = *input.Program.Sandbox
		}
		sandbox.Review = &name
		input.Program.Sandbox = &sandbox
	}
	return &input
}

// copyTime bounds a start for which a copy of a directory is made.
const copyTime = time.Hour

// mostAlike bounds the number of living agents that are named after one program.
const mostAlike = 1000

// taken reports whether a spawn was refused because a living agent has the name.
func taken(err error) bool {
	return cli.KernelCode(err) == 409
}

// announce prints the PID of a detached agent, or returns why its program did not start.
func (a *app) announce(ctx context.Context, c *client.Client, j *job, pid int64) error {
	d, err := cli.Describe(ctx, c, pid)
	if err != nil {
		return err
	}
	if d.Exit != nil && d.Exit.Reason == view.NotStarted && d.State == view.Terminated {
		return j.ended(d)
	}
	return a.PrintLine(fmt.Append(nil, pid))
}

// grant returns the grant of the agent of j. It is nil, which means the kernel's default grant, if no setting is a part of it.
func (j *job) grant(ctx context.Context, c *client.Client) (*schema.SpawnCapability, error) {
	grant := j.profile.Capability()
	if grant == nil {
		if !j.learn.on {
			return nil, nil
		}
		grant = new(schema.SpawnCapability)
	}
	if j.learn.on || grant.AllowedSyscalls == nil && grant.ResourceQuotas == nil {
		pools, err := resources(ctx, c)
		if err != nil {
			return nil, err
		}
		grant.ResourceQuotas = make(map[string]float64, len(pools))
		for resource, capacity := range pools {
			grant.ResourceQuotas[resource] = defaultQuota
			if j.learn.on {
				grant.ResourceQuotas[resource] = max(defaultQuota, capacity)
			}
		}
	}
	switch {
	case j.learn.on:
		if grant.AllowedSyscalls == nil {
			grant.AllowedSyscalls = j.profile.Services()
		}
		list, err := cli.InvokeAs(ctx, c, schema.SyscallList, &schema.ListInput{})
		if err != nil {
			return nil, err
		}
		j.everything(grant, list.Syscalls)
	case grant.AllowedSyscalls == nil:
		grant.AllowedSyscalls = defaultGrant()
		if grant.HTTP != nil {
			grant.AllowedSyscalls = append(grant.AllowedSyscalls, "Http.Fetch")
		}
		grant.AllowedSyscalls = append(grant.AllowedSyscalls, j.profile.Services()...)
	}
	if ttl := j.profile.TTL; ttl > 0 && !j.learn.on {
		last, err := lastTick(ctx, c, ttl)
		if err != nil {
			return nil, err
		}
		grant.ExpiresAtTick = last
	}
	return grant, nil
}

// lastTick returns the last tick of a grant that is valid for a time from now.
func lastTick(ctx context.Context, c *client.Client, ttl time.Duration) (*int64, error) {
	clock, err := cli.InvokeAs(ctx, c, schema.ClockGet, &schema.ClockGetInput{})
	if err != nil {
		return nil, err
	}
	last := clock.Tick + ticksOf(ttl)
	return &last, nil
}

// everything makes a grant that of --learn for a kernel with these syscalls: all except those that open secrets, which the settings must
// name.
func (j *job) everything(grant *schema.SpawnCapability, syscalls []string) {
	allow := slices.DeleteFunc(syscalls, func(name string) bool { return !schema.Registrable(name) }) // patterns do not include these
	allow = append(allow, "*")
	for _, pattern := range grant.AllowedSyscalls {
		if row, ok := view.Named(pattern); !ok || row.Grant == schema.ByName {
			allow = append(allow, pattern)
		}
	}
	http := &schema.HTTPGrant{Hosts: []string{"*", "*:*"}, Plain: true}
	if given := grant.HTTP; given != nil {
		http.Hosts, http.Open = append(http.Hosts, given.Hosts...), given.Open
	}
	grant.AllowedSyscalls, grant.HTTP = allow, http
}

// ticksOf converts a duration to ticks, rounded up: one a second, the default of the kernel's clock (PROTOCOL 6).
func ticksOf(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// defaultGrant returns the syscalls of the default grant: those with a code (CAP 2), and Ipc.Receive.
func defaultGrant() []string {
	codes := []string{"Ipc.Receive"}
	for _, row := range schema.Syscalls() {
		if row.Code != "" {
			codes = append(codes, row.Code)
		}
	}
	return codes
}

// defaultQuota is the default quota of each resource (CAP 3).
const defaultQuota = 200.0

// resources returns the capacity of each resource.
func resources(ctx context.Context, c *client.Client) (map[string]float64, error) {
	data, err := cli.Invoke(ctx, c, schema.MemoryGet.Type, &schema.MemoryGetInput{Key: "proc/cmdline"})
	if err != nil {
		return nil, err
	}
	members, _ := view.Members(data)
	pools, _ := view.As[map[string]float64](members["resources"])
	return pools, nil
}
