package schema

// ClockGetInput is the data of Clock.Get.
type ClockGetInput struct{}

// ClockAdvanceInput is the data of Clock.Advance.
type ClockAdvanceInput struct {
	Ticks int64 `json:"ticks" keep:"always" min:"0" max:"1000000000" doc:"How many ticks to move the clock on."`
}

// ClockOutput is the answer of Clock.Get and Clock.Advance.
type ClockOutput struct {
	Tick int64 `json:"tick" keep:"always" doc:"The kernel's tick."`
}

// The syscalls of the clock.
var (
	ClockGet = NewQuery[ClockGetInput, ClockOutput](Syscall{
		Type: "Clock.Get", Domain: Kernel,
		Script:      "scripts/kernel.txtar",
		Description: "Returns the kernel's tick.",
	})

	ClockAdvance = NewCommand[ClockAdvanceInput, ClockOutput](Syscall{
		Type: "Clock.Advance", Domain: Kernel,
		Script:      "scripts/kernel.txtar",
		Description: "Moves the kernel's clock on.",
	})
)

// LoginFailedInput is the data of the kernel's own Kernel.LoginFailed, and of its outcome.
type LoginFailedInput struct {
	Reason      string `json:"reason" keep:"always" minlen:"1" doc:"Why the login failed: one of a few fixed reasons."`
	Fingerprint string `json:"fingerprint,omitzero" keep:"always" doc:"Fingerprint of the key that was shown; absent where none could be read."`
	UID         *int64 `json:"uid,omitzero" keep:"always" min:"0" doc:"User that connected, as the system vouches for it; absent over TLS."`
	OSPID       *int64 `json:"os_pid,omitzero" keep:"always" min:"0" doc:"Operating system process that connected; absent over TLS."`
	Address     string `json:"address,omitzero" keep:"always" doc:"IP address that connected over TLS; otherwise absent."`
	Count       int64  `json:"count,omitzero" keep:"always" min:"1" doc:"How many failures with this reason the record counts; it describes the latest. Absent for a single failure."`
}

// AuthenticateInput is the data of Syscall.Authenticate, with which a client answers the prologue (PROTOCOL 4).
type AuthenticateInput struct {
	PublicKey *string `json:"public_key,omitzero" keep:"always" maxlen:"6400" doc:"Key that the connection belongs to, in the form of authorized_keys."`
	Signature *string `json:"signature,omitzero" keep:"never" maxlen:"8192" doc:"Signature of the kernel's challenge."`
}

// The syscalls of the login.
var (
	SyscallAuthenticate = NewCommand[AuthenticateInput, SuccessOutput](Syscall{
		Type: "Syscall.Authenticate", Domain: Kernel, Grant: Everyone,
		Script:      "scripts/kernel.txtar",
		Description: "Begins a connection: the kernel sends it first, and the client answers it. Later it is refused, as the connection is authenticated already.",
	})

	KernelLoginFailed = NewStep[LoginFailedInput, LoginFailedInput](Syscall{
		Type: "Kernel.LoginFailed", Domain: Kernel,
		Description: "Records a failed login.",
	})
)

// BootedInput is the data of the kernel's own Kernel.Booted, and of its outcome. Clients see the members that identify the kernel;
// the other members distinguish a state directory from a copy of it.
type BootedInput struct {
	Instance  string  `json:"instance" keep:"always" minlen:"1" doc:"Name of the record, made at the first start."`
	Epoch     int64   `json:"epoch" keep:"always" min:"1" doc:"Counts from 1; each restored copy begins another."`
	HostKey   string  `json:"host_key" keep:"always" minlen:"1" doc:"The kernel's public key, as a line of authorized_keys."`
	Machine   string  `json:"machine,omitzero" keep:"always" doc:"Digest of the machine id. Absent if the machine has none."`
	Directory string  `json:"directory,omitzero" keep:"always" doc:"The journal's directory: its inode, and when that was made."`
	Epochs    []Epoch `json:"epochs,omitzero" keep:"always" doc:"All epochs of the record, this one last. Absent in records older than the member."`
	Held      bool    `json:"held,omitzero" keep:"always" doc:"Whether the agents of the epoch before wait for the operator before they start."`

	Acknowledge string `json:"acknowledge,omitzero" keep:"always" doc:"quorum: answers wait for a majority of the bus until the next start. Absent: they do not."`
}

// TakeOverInput is the data of the kernel's own Kernel.TakeOver, and of its outcome. From this entry on, another host leads
// the kernel.
type TakeOverInput struct {
	Epoch     int64   `json:"epoch" keep:"always" min:"2" doc:"The epoch that begins with this entry."`
	HostKey   string  `json:"host_key" keep:"always" minlen:"1" doc:"The key of the host that leads from now on, as a line of authorized_keys."`
	Machine   string  `json:"machine,omitzero" keep:"always" doc:"Digest of its machine id. Absent if the machine has none."`
	Directory string  `json:"directory,omitzero" keep:"always" doc:"Its journal's directory: its inode, and when that was made."`
	Epochs    []Epoch `json:"epochs" keep:"always" doc:"All epochs of the record, this one last."`
}

// Epoch is a part of a kernel's record. A new one begins with the record, with a restore of a copy, and with a takeover.
type Epoch struct {
	Epoch    int64 `json:"epoch" keep:"always" doc:"Its number."`
	FirstSeq int64 `json:"first_seq" keep:"always" doc:"Its first entry."`

	Continues bool `json:"continues,omitzero" keep:"always" doc:"Whether it continues the epoch before it without a loss: no answered call is missing."`
}

// The syscalls that record a start and a takeover.
var (
	KernelBooted = NewStep[BootedInput, BootedInput](Syscall{
		Type: "Kernel.Booted", Domain: Kernel,
		Description: "Records a start of the kernel, and the epoch that it runs in.",
	})

	KernelTakeOver = NewStep[TakeOverInput, TakeOverInput](Syscall{
		Type: "Kernel.TakeOver", Domain: Kernel,
		Description: "Begins the epoch of another host that leads the kernel. It is the first entry that this host appends to the kernel's stream.",
	})
)

// ThrottledInput is the data of the kernel's own Kernel.Throttled, and of its outcome.
type ThrottledInput struct {
	PID   int64 `json:"pid" keep:"always" min:"1" doc:"The agent whose calls were refused."`
	Count int64 `json:"count" keep:"always" min:"1" doc:"How many calls it were, in a second at most."`
}

// The syscall that records throttled calls.
var (
	KernelThrottled = NewStep[ThrottledInput, ThrottledInput](Syscall{
		Type: "Kernel.Throttled", Domain: Kernel,
		Description: "Records calls that were refused because the agent exceeded one of its bounds.",
	})
)
