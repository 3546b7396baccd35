package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// grant settles what the agent of j is granted. Without --allow it is the default grant, which the kernel makes by itself
// unless --quota or --ttl change it.
func (j *job) grant(ctx context.Context, c *client.Client) (*schema.SpawnCapability, error) {
	switch {
	case j.learn:
		quotas, err := capacities(ctx, c)
		return &schema.SpawnCapability{AllowedSyscalls: []string{"*"}, ResourceQuotas: quotas}, err
	case j.input.Capabilities == nil && j.quotas == nil && j.ttl == 0:
		return nil, nil
	}
	grant := &schema.SpawnCapability{ResourceQuotas: j.quotas}
	if j.input.Capabilities != nil {
		grant.AllowedSyscalls = j.input.Capabilities.AllowedSyscalls
	} else {
		grant.AllowedSyscalls = defaultGrant()
	}
	if j.input.Capabilities == nil && j.quotas == nil {
		quotas, err := defaultQuotas(ctx, c)
		if err != nil {
			return nil, err
		}
		grant.ResourceQuotas = quotas
	}
	if j.ttl > 0 {
		clock, err := invokeAs[schema.ClockOutput](ctx, c, "Clock.Get", &schema.ClockGetInput{})
		if err != nil {
			return nil, err
		}
		last := clock.Tick + ticksOf(j.ttl)
		grant.ExpiresAtTick = &last
	}
	return grant, nil
}

// ticksOf is a duration in ticks, of which there is one a second unless the kernel's clock is configured otherwise
// (PROTOCOL 6).
func ticksOf(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// defaultGrant names what an agent may call without a grant of its own: the syscalls that have a code (CAP 2), and
// Ipc.Receive.
func defaultGrant() []string {
	codes := []string{"Ipc.Receive"}
	for _, row := range schema.Syscalls() {
		if row.Code != "" {
			codes = append(codes, row.Code)
		}
	}
	return codes
}

// probe begins the name of the process that is asked what the default grant comes to. It runs nothing, and is gone at once.
const probe = "pwos-run-probe"

// defaultQuotas returns the default grant's units of each resource. Only a process that was granted them tells which
// resources there are, so one is made for that.
func defaultQuotas(ctx context.Context, c *client.Client) (map[string]float64, error) {
	born, err := invokeAs[schema.SpawnOutput](ctx, c, "Syscall.Spawn", &schema.SpawnInput{ChildAgentID: fmt.Sprintf("%s-%d", probe, os.Getpid())})
	if err != nil {
		return nil, err
	}
	d, err := describe(ctx, c, born.ChildPID)
	if err != nil {
		return nil, err
	}
	_, err = invoke(ctx, c, "Syscall.Terminate", &schema.TerminateInput{TargetPID: born.ChildPID})
	return d.ResourceQuota, err
}

// capacities returns all there is of each resource.
func capacities(ctx context.Context, c *client.Client) (map[string]float64, error) {
	quotas, err := defaultQuotas(ctx, c)
	if err != nil {
		return nil, err
	}
	for resource := range quotas {
		pool, err := invokeAs[schema.ResourceQueryOutput](ctx, c, "Syscall.Query", &schema.ResourceQueryInput{ResourceID: resource})
		if err != nil {
			return nil, err
		}
		quotas[resource] = pool.Capacity
	}
	return quotas, nil
}

// describe returns the descriptor of a process.
func describe(ctx context.Context, c *client.Client, pid int64) (schema.Descriptor, error) {
	return invokeAs[schema.Descriptor](ctx, c, "Process.Get", &schema.ProcessGetInput{PID: pid})
}
