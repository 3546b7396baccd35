package schema

// LoginFailedInput is the data of the kernel's own Kernel.LoginFailed, and of its outcome.
type LoginFailedInput struct {
	Reason      string `json:"reason" keep:"always" minlen:"1" doc:"Why nobody was let in, in the words of a few fixed reasons."`
	Fingerprint string `json:"fingerprint,omitzero" keep:"always" doc:"Fingerprint of the key that was shown; absent where none could be read."`
	UID         int64  `json:"uid" keep:"always" min:"0" doc:"User that connected, as the system vouches for it."`
	OSPID       int64  `json:"os_pid" keep:"always" min:"0" doc:"Process of the operating system that connected, likewise."`
	Count       int64  `json:"count,omitzero" keep:"always" min:"1" doc:"How many failures of this reason the record stands for, of which it names the latest; absent where it is of one alone."`
}

// AuthenticateInput is the data of Syscall.Authenticate, as a client answers the prologue with it (PROTOCOL 4).
type AuthenticateInput struct {
	PublicKey *string `json:"public_key,omitzero" keep:"always" maxlen:"6400" doc:"Key that the connection belongs to, in the form of authorized_keys."`
	Signature *string `json:"signature,omitzero" keep:"never" maxlen:"8192" doc:"Signature of the kernel's challenge."`
}

// The syscalls of this file.
var (
	SyscallAuthenticate = NewCommand[AuthenticateInput, SuccessOutput](Syscall{
		Type: "Syscall.Authenticate", Domain: Kernel, Grant: Everyone,
		Script:      "scripts/kernel.txtar",
		Description: "Begins a connection: the kernel sends it first, and the client answers it. Later it is refused, as the connection is authenticated already.",
	})

	KernelLoginFailed = NewStep[LoginFailedInput, LoginFailedInput](Syscall{
		Type: "Kernel.LoginFailed", Domain: Kernel,
		Description: "Notes that a connection did not prove who it is.",
	})
)

func loginRows() []*Syscall {
	return []*Syscall{SyscallAuthenticate.Syscall, KernelLoginFailed.Syscall}
}
