package schema

// Capability is the domain of the capability registry (CAP 3).
const Capability Domain = "capability"

// GrantInput is the data of Capability.Grant.
type GrantInput struct {
	PID             int64              `json:"pid" min:"1" doc:"Process to grant to. What it was granted before is replaced."`
	AllowedSyscalls []string           `json:"allowed_syscalls" minlen:"1" doc:"What it may call: types such as Memory.Set, codes such as SYS_ALLOC, Domain.*, or * for all but what only the operator may. Crypto.Open has to be named: no pattern includes it."`
	ResourceQuotas  map[string]float64 `json:"resource_quotas,omitzero" min:"0" doc:"Most units that it may hold at once, by resource."`
	ExpiresAtTick   *int64             `json:"expires_at_tick,omitzero" min:"0" doc:"Last tick at which the grant holds. Default: it does not expire."`
	HTTP            *HTTPGrant         `json:"http,omitzero" doc:"What it may fetch with Http.Fetch. Default: nothing."`
}

// GrantDefaultInput is the data of Capability.GrantDefault.
type GrantDefaultInput struct {
	PID       int64    `json:"pid" min:"1" doc:"Process to grant to: the ten syscalls of the capability model, and 200 units of each resource."`
	Resources []string `json:"resources,omitzero" minlen:"1" doc:"Resources to grant 200 units of. Default: every pool of the configuration."`
}

// Token is a capability token (CAP 2), as Capability.Grant answers and Capability.Get shows.
type Token struct {
	PID             int64              `json:"pid" min:"0" doc:"Process that holds the token."`
	AllowedSyscalls []string           `json:"allowed_syscalls" doc:"What it may call, as it was granted, sorted."`
	ResourceQuotas  map[string]float64 `json:"resource_quotas" doc:"Most units that it may hold at once, by resource."`
	ExpiresAtTick   *int64             `json:"expires_at_tick,omitzero" doc:"Last tick at which the token holds; absent: it does not expire."`
	HTTP            *HTTPGrant         `json:"http,omitzero" doc:"What it may fetch; absent: nothing."`
}

// RevokeInput is the data of Capability.Revoke.
type RevokeInput struct {
	PID int64 `json:"pid" min:"1" doc:"Process whose token is taken away."`
}

// RevokeOutput is what Capability.Revoke answers.
type RevokeOutput struct {
	PID     int64 `json:"pid" doc:"The process."`
	Revoked bool  `json:"revoked" doc:"Whether it had a token."`
}

// RevokeExpiredInput is the data of Capability.RevokeExpired.
type RevokeExpiredInput struct{}

// RevokeExpiredOutput is what Capability.RevokeExpired answers.
type RevokeExpiredOutput struct {
	Revoked []int64 `json:"revoked" doc:"Processes whose expired token was taken away, ascending. At most as many as fit a line: call again until none come."`
}

// StripInput is the data of the kernel's own Capability.Strip: these processes are gone, and so are their tokens.
type StripInput struct {
	PIDs []int64 `json:"pids" doc:"Processes that have no token from now on."`
}

// CheckInput is the data of Capability.Check.
type CheckInput struct {
	PID        int64    `json:"pid" min:"0" doc:"Process to check for."`
	Syscall    string   `json:"syscall" minlen:"1" doc:"Type or code of the syscall."`
	ResourceID *string  `json:"resource_id,omitzero" minlen:"1" doc:"Resource that the call would name: looked at for Syscall.Alloc, Release and Query."`
	Amount     *float64 `json:"amount,omitzero" min:"0" doc:"Units of it that the call would take or give back. Default 0."`
}

// CheckOutput is what Capability.Check answers.
type CheckOutput struct {
	Allowed bool   `json:"allowed" doc:"Whether the call would pass capability and quota now."`
	Reason  string `json:"reason,omitzero" doc:"Why it would not: the message that the call would get."`
}

// CapabilityGetInput is the data of Capability.Get.
type CapabilityGetInput struct {
	PID *int64 `json:"pid,omitzero" min:"0" doc:"Process to show. Default: the caller."`
}

// CapabilityGetOutput is what Capability.Get answers.
type CapabilityGetOutput struct {
	Token
	Held map[string]float64 `json:"held" doc:"Units that it holds, by resource: of each that it has a quota of, and of what it holds beyond those."`
}

func capabilityRows() []Syscall {
	return []Syscall{
		{
			Type: "Capability.Grant", Kind: Command, Domain: Capability, Input: TypeOf[GrantInput](), Output: TypeOf[Token](),
			Description: "Grants a process what it may call and hold, in place of all that it was granted before. An agent grants only to its descendants, and no more than it holds itself.",
		},
		{
			Type: "Capability.GrantDefault", Kind: Command, Domain: Capability, Input: TypeOf[GrantDefaultInput](), Output: TypeOf[Token](),
			Description: "Grants a process the ten syscalls of the capability model and 200 units of each resource, in place of all that it was granted before.",
		},
		{
			Type: "Capability.Revoke", Kind: Command, Domain: Capability, Urgent: true, Input: TypeOf[RevokeInput](), Output: TypeOf[RevokeOutput](),
			Description: "Takes a process's token away. An agent revokes only its descendants'. What the process holds stays with it until it is released.",
		},
		{
			Type: "Capability.RevokeExpired", Kind: Command, Domain: Capability, Input: TypeOf[RevokeExpiredInput](), Output: TypeOf[RevokeExpiredOutput](),
			Description: "Takes away every token that has expired.",
		},
		{
			Type: "Capability.Endow", Kind: Command, Domain: Capability, Input: TypeOf[GrantInput](), Output: TypeOf[Token](), Internal: true,
			Description: "The kernel grants to a process that is about to be.",
		},
		{
			Type: "Capability.Strip", Kind: Command, Domain: Capability, Input: TypeOf[StripInput](), Output: TypeOf[SuccessOutput](), Internal: true,
			Description: "The kernel takes away the tokens of processes that are gone.",
		},
	}
}
