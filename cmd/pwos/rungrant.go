package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// grant settles what the agent of j is granted. Where no flag says anything of it, it is the default grant, which the kernel
// makes by itself.
func (j *job) grant(ctx context.Context, c *client.Client) (*schema.SpawnCapability, error) {
	if !j.learn && j.allow == nil && j.http == nil && j.quotas == nil && j.ttl == 0 && j.budget == nil {
		return nil, nil
	}
	grant := &schema.SpawnCapability{AllowedSyscalls: j.allow, ResourceQuotas: j.quotas, HTTP: j.http, Budget: j.budget}
	if j.learn || j.allow == nil && j.quotas == nil {
		pools, err := resources(ctx, c)
		if err != nil {
			return nil, err
		}
		grant.ResourceQuotas = make(map[string]float64, len(pools))
		for resource, capacity := range pools {
			grant.ResourceQuotas[resource] = defaultQuota
			if j.learn {
				grant.ResourceQuotas[resource] = max(defaultQuota, capacity)
			}
		}
	}
	switch {
	case j.learn:
		list, err := invokeAs(ctx, c, schema.SyscallList, &schema.ListInput{})
		if err != nil {
			return nil, err
		}
		grant.AllowedSyscalls, grant.HTTP = j.everything(list.Syscalls)
	case j.allow == nil:
		grant.AllowedSyscalls = defaultGrant()
		if j.http != nil {
			grant.AllowedSyscalls = append(grant.AllowedSyscalls, "Http.Fetch")
		}
	}
	if j.ttl > 0 {
		clock, err := invokeAs(ctx, c, schema.ClockGet, &schema.ClockGetInput{})
		if err != nil {
			return nil, err
		}
		last := clock.Tick + ticksOf(j.ttl)
		grant.ExpiresAtTick = &last
	}
	return grant, nil
}

// everything is what --learn grants, of a kernel with these syscalls: all but what opens secrets, which has to be asked for.
func (j *job) everything(syscalls []string) ([]string, *schema.HTTPGrant) {
	allow := slices.DeleteFunc(syscalls, func(name string) bool { return !schema.Registrable(name) }) // no pattern includes them
	allow = append(allow, "*")
	for _, pattern := range j.allow {
		if row, ok := named(pattern); !ok || row.Grant == schema.ByName {
			allow = append(allow, pattern)
		}
	}
	http := &schema.HTTPGrant{Hosts: []string{"*", "*:*"}, Plain: true}
	if j.http != nil {
		http.Hosts, http.Open = append(http.Hosts, j.http.Hosts...), j.http.Open
	}
	return allow, http
}

// ticksOf is a duration in ticks, of which there is one a second unless the kernel's clock is configured otherwise
// (PROTOCOL 6).
func ticksOf(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// defaultGrant names what an agent may call without a grant of its own: the syscalls that have a code (CAP 2), and receiving
// what it is sent.
func defaultGrant() []string {
	codes := []string{"Ipc.Receive"}
	for _, row := range schema.Syscalls() {
		if row.Code != "" {
			codes = append(codes, row.Code)
		}
	}
	return codes
}

// defaultQuota is how many units of each resource the default grant allows (CAP 3).
const defaultQuota = 200.0

// resources returns the capacity of each resource that there is.
func resources(ctx context.Context, c *client.Client) (map[string]float64, error) {
	data, err := invoke(ctx, c, schema.MemoryGet.Type, &schema.MemoryGetInput{Key: "proc/cmdline"})
	if err != nil {
		return nil, err
	}
	members, _ := objectOf(data)
	pools, _ := valueOf[map[string]float64](members["resources"])
	return pools, nil
}

// describe returns the descriptor of a process.
func describe(ctx context.Context, c *client.Client, pid int64) (schema.Descriptor, error) {
	return invokeAs(ctx, c, schema.ProcessGet, &schema.ProcessGetInput{PID: pid})
}
