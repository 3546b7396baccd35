package schema

// BootedInput is the data of the kernel's own Kernel.Booted, and of its outcome. Clients are shown what names the kernel;
// the other members tell a state directory from a copy of it.
type BootedInput struct {
	Instance  string `json:"instance" keep:"always" minlen:"1" doc:"Name of the state directory's life, made at its first start."`
	Epoch     int64  `json:"epoch" keep:"always" min:"1" doc:"Counts from 1; each restored copy begins another."`
	HostKey   string `json:"host_key" keep:"always" minlen:"1" doc:"The kernel's public key, as a line of authorized_keys."`
	Machine   string `json:"machine,omitzero" keep:"always" doc:"Digest of the machine's number; absent where it has none."`
	Directory string `json:"directory,omitzero" keep:"always" doc:"Which directory the journal is in: its inode, and when that was made."`
	Held      bool   `json:"held,omitzero" keep:"always" doc:"Whether the agents of the epoch before are not started until the operator says so."`
}

// The syscalls of this file.
var (
	KernelBooted = NewStep[BootedInput, BootedInput](Syscall{
		Type: "Kernel.Booted", Domain: Kernel,
		Description: "Notes that the kernel started, and which life of the state directory that is.",
	})
)

func bootRows() []*Syscall {
	return []*Syscall{KernelBooted.Syscall}
}
