package schema

import (
	"bytes"
	"slices"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// Capability is the domain of the capability registry (CAP 3).
const Capability Domain = "capability"

// GrantInput is the data of Capability.Grant.
type GrantInput struct {
	PID             int64              `json:"pid" keep:"always" min:"1" doc:"Process to grant to."`
	AllowedSyscalls []string           `json:"allowed_syscalls" keep:"always" minlen:"1" doc:"What it may call: types such as Memory.Set, codes such as SYS_ALLOC, Domain.*, * for all but what only the operator may, Call:PATH and Call:PATH/* for user-space syscalls, or Tool:HOST/TOOL and Tool:HOST/* for the tools of an agent host. Crypto.Open has to be named: no pattern includes it."`
	ResourceQuotas  map[string]float64 `json:"resource_quotas,omitzero" keep:"always" min:"0" doc:"Maximum units it may hold at once, by resource. Units held by processes it grants to count too. Released units can be reserved again."`
	ExpiresAtTick   *int64             `json:"expires_at_tick,omitzero" keep:"always" null:"allowed" min:"0" doc:"Last tick at which the grant holds; null or absent: it does not expire, or with mode add it stays what it was."`
	HTTP            *HTTPGrant         `json:"http,omitzero" keep:"always" doc:"What it may fetch with Http.Fetch. Default: nothing."`
	Budget          *BudgetGrant       `json:"budget,omitzero" keep:"always" doc:"Total it may spend, including what it has spent already, so granting the same budget again does not refill it. It is carved out of the budget that it drew on before. Default: unchanged."`
	Mode            *string            `json:"mode,omitzero" keep:"always" enum:"replace add" doc:"replace, the default: the token is this grant alone. add: syscalls and hosts are added to the earlier grant, a quota replaces the one of the same resource, and the rest is unchanged. An expired grant needs a new expiry first."`
}

// Adds reports whether the grant is added to earlier ones.
func (in *GrantInput) Adds() bool { return in.Mode != nil && *in.Mode == "add" }

// EndowInput is the data of the kernel's own Capability.Endow, which makes the first grant of a new process.
type EndowInput struct {
	GrantInput
	GrantedBy *int64 `json:"granted_by,omitzero" keep:"always" min:"0" doc:"Process that spawns it. Older journals lack it: it is the parent."`
}

// GrantDefaultInput is the data of Capability.GrantDefault.
type GrantDefaultInput struct {
	PID       int64    `json:"pid" keep:"always" min:"1" doc:"Process to grant to: the ten syscalls of the capability model, Ipc.Receive, and 200 units of each resource."`
	Resources []string `json:"resources,omitzero" keep:"always" minlen:"1" doc:"Resources to grant 200 units of. Default: every pool of the configuration."`
}

// TokenGrant has the permissions that one granter gives a process.
type TokenGrant struct {
	GrantedBy       int64              `json:"granted_by" keep:"always" doc:"Process that granted it; 0 is the operator. What an agent granted is cut down to what that agent may do itself."`
	AllowedSyscalls []string           `json:"allowed_syscalls" keep:"always" doc:"What it may call, as it was granted, sorted."`
	ResourceQuotas  map[string]float64 `json:"resource_quotas" keep:"always" doc:"Most units that it may hold at once, by resource, together with those that it grants to."`
	ExpiresAtTick   *int64             `json:"expires_at_tick" keep:"always" null:"allowed" doc:"Last tick at which the grant holds; null: it does not expire."`
	HTTP            *HTTPGrant         `json:"http,omitzero" keep:"always" doc:"What it may fetch; absent: nothing."`
}

// Token is a capability token (CAP 2).
type Token struct {
	PID int64 `json:"pid" keep:"always" min:"0" doc:"Process that holds the token."`
	TokenGrant
	Grants []TokenGrant `json:"grants,omitzero" keep:"always" doc:"If both the operator and an agent have granted: the two grants. The other members are their sum."`
}

// GrantOutput is the answer of Capability.Grant.
type GrantOutput struct {
	Token
	Warning string `json:"warning,omitzero" keep:"always" doc:"Why no part of the grant is effective now. Absent if some part is."`
}

// RevokeInput is the data of Capability.Revoke.
type RevokeInput struct {
	PID int64 `json:"pid" keep:"always" min:"1" doc:"Process whose token is revoked."`
}

// RevokeOutput is the answer of Capability.Revoke.
type RevokeOutput struct {
	PID     int64 `json:"pid" keep:"always" doc:"The process."`
	Revoked bool  `json:"revoked" keep:"always" doc:"Whether it had a token."`
}

// RevokeExpiredInput is the data of Capability.RevokeExpired.
type RevokeExpiredInput struct{}

// RevokeExpiredOutput is the answer of Capability.RevokeExpired.
type RevokeExpiredOutput struct {
	Revoked []int64 `json:"revoked" keep:"always" doc:"Processes whose expired token was revoked, ascending. At most as many as fit a line: call again until none come."`
}

// StripInput is the data of the kernel's own Capability.Strip, which removes the tokens of processes.
type StripInput struct {
	PIDs []int64 `json:"pids" keep:"always" doc:"Processes that have no token from now on."`
}

// RestoreTokenInput is the data of the kernel's own Capability.Restore.
type RestoreTokenInput struct {
	Undoes
	PID   int64  `json:"pid" keep:"always" min:"1" doc:"Process whose token it is."`
	Token *Token `json:"token,omitzero" keep:"always" doc:"The token that it had before what is undone; absent: it had none."`
}

// CheckInput is the data of Capability.Check.
type CheckInput struct {
	PID        *int64   `json:"pid,omitzero" keep:"always" min:"0" doc:"Process to check for. Default: the caller."`
	Syscall    string   `json:"syscall" keep:"always" minlen:"1" doc:"Type or code of the syscall, the name of a registered one, or a name as in grants: Tool:HOST/TOOL, Call:PATH."`
	Data       Value    `json:"data,omitzero" keep:"never" doc:"The data of the call. With it, every check of the real call is made and the answer has each stage. Nothing runs."`
	ResourceID *string  `json:"resource_id,omitzero" keep:"always" minlen:"1" doc:"Resource that the call would name: looked at for Syscall.Alloc, Release and Query."`
	Amount     *float64 `json:"amount,omitzero" keep:"always" min:"0" doc:"Units of it that the call would take or give back. Default 0."`
}

// Of returns the process that a Capability.Check of the given caller is about.
func (in *CheckInput) Of(asking int64) int64 {
	if in.PID != nil {
		return *in.PID
	}
	return asking
}

// CheckOutput is the answer of Capability.Check.
type CheckOutput struct {
	Allowed bool         `json:"allowed" keep:"always" doc:"Whether the call would pass capability and quota now; with data, whether it would be made."`
	Reason  string       `json:"reason,omitzero" keep:"always" doc:"Why it would not: the message that the call would get."`
	Error   string       `json:"error,omitzero" keep:"always" doc:"With data: the id of the error that the call would get."`
	Code    int64        `json:"code,omitzero" keep:"always" doc:"With data: its code."`
	Type    string       `json:"type,omitzero" keep:"always" doc:"With data: the syscall that would be called, as rules name it."`
	PID     *int64       `json:"pid,omitzero" keep:"always" doc:"With data: the process that the call would be made by."`
	Tick    *int64       `json:"tick,omitzero" keep:"always" doc:"With data: the tick that it would be made at."`
	Stages  []CheckStage `json:"stages,omitzero" keep:"always" doc:"With data: the verdict of each stage on the call, in order, up to the one that does not allow it."`
}

// CheckStage is the verdict of one stage on the checked call.
type CheckStage struct {
	Stage     string `json:"stage" keep:"always" doc:"data, a stage of the gate (bounds, identity, token, tick, quota, policy, approval), or handler: what the syscall itself asks."`
	Verdict   string `json:"verdict" keep:"always" enum:"allows denies asks" doc:"Its verdict. asks: the call would wait for an approval."`
	Why       string `json:"why,omitzero" keep:"always" doc:"By what."`
	Fix       string `json:"fix,omitzero" keep:"always" doc:"What to do about it."`
	Rule      string `json:"rule,omitzero" keep:"always" doc:"The rule of the policy that decides."`
	At        string `json:"at,omitzero" keep:"always" doc:"Where the rule is, as FILE:LINE. Operator only."`
	Exception string `json:"exception,omitzero" keep:"always" doc:"The exception to add to the rule, before its end, to allow this one call. Operator only."`
}

// CapabilityGetInput is the data of Capability.Get.
type CapabilityGetInput struct {
	PID *int64 `json:"pid,omitzero" keep:"always" min:"0" doc:"Process to show. Default: the caller."`
}

// CapabilityGetOutput is the answer of Capability.Get.
type CapabilityGetOutput struct {
	Token
	Effective Effective          `json:"effective" keep:"always" doc:"What the token allows now: what was granted, cut down to what the granters may do."`
	Held      map[string]Decimal `json:"held" keep:"always" doc:"Units that it holds, by resource: every resource with a quota, and any other that it holds."`
	HeldBelow map[string]Decimal `json:"held_below,omitzero" keep:"always" doc:"Units that others hold by its grants, by resource: they count against its quota too."`
}

// Effective is the part of a token that is effective now.
type Effective struct {
	AllowedSyscalls []string           `json:"allowed_syscalls" keep:"always" doc:"What it may call now, sorted."`
	ResourceQuotas  map[string]float64 `json:"resource_quotas" keep:"always" doc:"Most units that it may hold at once, by resource."`
	ExpiresAtTick   *int64             `json:"expires_at_tick" keep:"always" null:"allowed" doc:"Last tick at which any of it holds; null: it does not expire."`
	HTTP            *HTTPGrant         `json:"http,omitzero" keep:"always" doc:"What it may fetch; absent: nothing."`
}

// HoldersOf returns the processes whose tokens a journaled message has changed. outcome is its outcome; if it failed, there are none.
func HoldersOf(m *Message, outcome []byte) []int64 {
	row, ok := Lookup(m.Type)
	if !ok || row.Domain != Capability || row.Kind != KindCommand {
		return nil
	}
	o, err := DecodeOutcome(outcome)
	if err != nil || o.Err != nil {
		return nil
	}
	pids := pidsOf(m.Data, "pid", "pids")
	if row == CapabilityRevokeExpired.Syscall {
		pids = pidsOf(o.Data, "revoked")
	}
	return pids
}

// pidsOf returns the PIDs in members of an object, each a number or a list of numbers.
func pidsOf(object Value, names ...string) (pids []int64) {
	if !bytes.HasPrefix(object, []byte("{")) {
		return nil
	}
	add := func(value []byte) bool {
		if pid, ok := jsontype.ParseInteger(value); ok {
			pids = append(pids, pid)
		}
		return true
	}
	jsontype.Members(object, func(name, value []byte) bool {
		switch {
		case !slices.Contains(names, string(name)):
		case value[0] == '[':
			jsontype.Elements(value, add)
		default:
			add(value)
		}
		return true
	})
	return pids
}

// The syscalls of this file.
var (
	CapabilityGrant = NewCommand[GrantInput, GrantOutput](Syscall{
		Type: "Capability.Grant", Domain: Capability,
		Script:      "scripts/capability.txtar",
		Description: "Sets what a process may call and hold, or adds to it. An agent can grant only to its descendants, and only what it has itself, now and later.",
	})

	CapabilityGrantDefault = NewCommand[GrantDefaultInput, GrantOutput](Syscall{
		Type: "Capability.GrantDefault", Domain: Capability,
		Script:      "scripts/capability.txtar",
		Description: "Grants a process the ten syscalls of the capability model, Ipc.Receive and 200 units of each resource, in place of all that it was granted before.",
	})

	CapabilityRevoke = NewCommand[RevokeInput, RevokeOutput](Syscall{
		Type: "Capability.Revoke", Domain: Capability, Urgent: true,
		Script:      "scripts/capability.txtar",
		Description: "Revokes a process's token, and all grants that derive from it. An agent revokes only its descendants'. The process keeps its reserved units until it releases them.",
	})

	CapabilityRevokeExpired = NewCommand[RevokeExpiredInput, RevokeExpiredOutput](Syscall{
		Type: "Capability.RevokeExpired", Domain: Capability,
		Script:      "scripts/capability.txtar",
		Description: "Revokes every expired token.",
	})

	CapabilityRestore = NewStep[RestoreTokenInput, SuccessOutput](Syscall{
		Type: "Capability.Restore", Domain: Capability,
		Description: "Undoes a grant or a revocation: the process has the token again that it had before, or none.",
	})

	CapabilityWatch = NewQuestion[ListWatchInput, SuccessOutput](Syscall{
		Type: "Capability.Watch", Domain: Capability,
		Description: "Finds whether the syscalls that a process may call have changed since the last push to a subscriber of Syscall.List.",
	})

	CapabilityEndow = NewStep[EndowInput, Token](Syscall{
		Type: "Capability.Endow", Domain: Capability,
		Description: "Grants a process its first token, before it is spawned.",
	})

	CapabilityStrip = NewStep[StripInput, SuccessOutput](Syscall{
		Type: "Capability.Strip", Domain: Capability,
		Description: "Removes the tokens of processes that have ended.",
	})
)
