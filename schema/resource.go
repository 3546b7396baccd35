package schema

// Resource is the domain of resource pools and holdings.
const Resource Domain = "resource"

// AllocInput is the data of Syscall.Alloc and of Syscall.Release.
type AllocInput struct {
	Target
	ResourceID string  `json:"resource_id" keep:"always" minlen:"1" doc:"Name of a pool of the configuration."`
	Amount     float64 `json:"amount" keep:"always" min:"0" doc:"Units of the resource."`
}

// AllocOutput is the answer of Syscall.Alloc.
type AllocOutput struct {
	ResourceID string  `json:"resource_id" keep:"always" doc:"Name of the pool."`
	Amount     Decimal `json:"amount" keep:"always" doc:"Units that this call reserved."`
	Reserved   Decimal `json:"reserved" keep:"always" doc:"Total units of it that the process now holds."`
	Against    []int64 `json:"counted_against,omitzero" keep:"always" doc:"Granters whose quota these units count against too, the nearest first."`
}

// ReleaseOutput is the answer of Syscall.Release.
type ReleaseOutput struct {
	ResourceID string  `json:"resource_id" keep:"always" doc:"Name of the pool."`
	Amount     Decimal `json:"amount" keep:"always" doc:"Units that this call gave back."`
}

// ResourceQueryInput is the data of Syscall.Query.
type ResourceQueryInput struct {
	Target
	ResourceID string `json:"resource_id" keep:"always" minlen:"1" doc:"Name of a pool of the configuration."`
}

// ResourceQueryOutput is the answer of Syscall.Query.
type ResourceQueryOutput struct {
	Available   Decimal `json:"available" keep:"always" doc:"Units that are free."`
	Capacity    Decimal `json:"capacity" keep:"always" doc:"Total units of the pool."`
	Utilization Decimal `json:"utilization" keep:"always" doc:"Share of the pool in use, 0 to 1."`
}

// ResourceFreeInput is the data of the kernel's own Resource.Free, which releases the holdings of ended processes.
type ResourceFreeInput struct {
	PIDs []int64 `json:"pids" keep:"always" doc:"Processes that hold nothing from now on."`
}

// The syscalls of this file.
var (
	SyscallAlloc = NewCommand[AllocInput, AllocOutput](Syscall{
		Type: "Syscall.Alloc", Code: "SYS_ALLOC", Domain: Resource,
		Script:      "scripts/resource.txtar",
		Description: "Reserves units of a resource for the caller, within its quota, the quota of each granter above it, and what is free in the pool, until it releases them.",
	})

	SyscallRelease = NewCommand[AllocInput, ReleaseOutput](Syscall{
		Type: "Syscall.Release", Code: "SYS_RELEASE", Domain: Resource,
		Script:      "scripts/resource.txtar",
		Description: "Gives units of a resource that the caller holds back to the pool.",
	})

	SyscallQuery = NewQuery[ResourceQueryInput, ResourceQueryOutput](Syscall{
		Type: "Syscall.Query", Code: "SYS_QUERY", Domain: Resource,
		Script:      "scripts/resource.txtar",
		Description: "Says how much of a resource is available.",
	})

	CapabilityGet = NewQuery[CapabilityGetInput, CapabilityGetOutput](Syscall{
		Type: "Capability.Get", Domain: Resource,
		Script:      "scripts/resource.txtar",
		Description: "Shows a process's token, which part of it is effective, and how much of each quota it holds. An agent sees its own and its descendants'.",
	})

	CapabilityCheck = NewQuery[CheckInput, CheckOutput](Syscall{
		Type: "Capability.Check", Domain: Resource,
		Script:      "scripts/resource.txtar",
		Description: "Says whether a call would pass capability and quota now, and why not. With data it asks all that the call itself would be asked, and says by what it is allowed or refused. Runs nothing. An agent asks about itself and its descendants.",
	})

	ResourceFree = NewStep[ResourceFreeInput, SuccessOutput](Syscall{
		Type: "Resource.Free", Domain: Resource,
		Description: "The kernel releases what ended processes held.",
	})
)
