package schema

// LoginFailedInput is the data of the kernel's own Kernel.LoginFailed, and of its outcome.
type LoginFailedInput struct {
	Reason      string `json:"reason" keep:"always" minlen:"1" doc:"Why nobody was let in, in the words of a few fixed reasons."`
	Fingerprint string `json:"fingerprint,omitzero" keep:"always" doc:"Fingerprint of the key that was shown; absent where none could be read."`
	UID         int64  `json:"uid" keep:"always" min:"0" doc:"User that connected, as the system vouches for it."`
	OSPID       int64  `json:"os_pid" keep:"always" min:"0" doc:"Process of the operating system that connected, likewise."`
	Count       int64  `json:"count,omitzero" keep:"always" min:"1" doc:"How many failures of this reason the record stands for, of which it names the latest; absent where it is of one alone."`
}

// The syscalls of this file.
var (
	KernelLoginFailed = NewStep[LoginFailedInput, LoginFailedInput](Syscall{
		Type: "Kernel.LoginFailed", Domain: Kernel,
		Description: "Notes that a connection did not prove who it is.",
	})
)

func loginRows() []*Syscall {
	return []*Syscall{KernelLoginFailed.Syscall}
}
