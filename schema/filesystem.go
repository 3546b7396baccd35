package schema

// ResolveInput is the data of FileSystem.Resolve.
type ResolveInput struct {
	Target
	URI  string  `json:"uri" keep:"url" minlen:"1" maxlen:"2048" doc:"A name: os:///p/q or p/q below root, ./p and ../p beside base, an https: address as it is."`
	Base *string `json:"base,omitzero" keep:"url" minlen:"1" maxlen:"2048" doc:"The name that it stands beside. Default: the identity that the caller has adopted, else root."`
}

// ResolveOutput is what FileSystem.Resolve answers.
type ResolveOutput struct {
	URI string `json:"uri" keep:"always" doc:"The name in canonical form: an address where it lies in a mount of one, else one that begins with os:///."`
}

// The syscalls of this file.
var (
	FileSystemResolve = NewQuery[ResolveInput, ResolveOutput](Syscall{
		Type: "FileSystem.Resolve", Domain: Kernel,
		Script:      "scripts/promptware.txtar",
		Description: "Says what a name means, by root, mounts and base, and opens nothing: whether it is there shows when it is read. Nothing leads above root.",
	})
)
