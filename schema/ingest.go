package schema

// The syscalls of this file.
var (
	KernelIngest = NewEffect[IngestInput, IngestOutput](Syscall{
		Type: "Kernel.Ingest", Domain: Process,
		Script:      "scripts/promptware.txtar",
		Description: "Has a process adopt a resource: fetches, validates and loads it, and switches the process's identity. A phase that fails leaves everything as it was.",
	}, Syscall{
		Type:        "Process.Adopted",
		Description: "Commits an ingest: switches the identity of a process to a resource that has passed all phases, and keeps its content.",
	})

	FileSystemHydrate = NewEffect[HydrateInput, HydrateOutput](Syscall{
		Type: "FileSystem.Hydrate", Domain: Process,
		Script:      "scripts/promptware.txtar",
		Description: "Describes the skills and tools that the front matter of a resource lists: each is read and checked, none is started. If one is missing, the call fails.",
	}, Syscall{
		Type:        "FileSystem.Hydrated",
		Description: "Ends a FileSystem.Hydrate.",
	})
)

// Identity is the resource that a process has adopted (ABI 8).
type Identity struct {
	ContextID string `json:"context_id" keep:"always" minlen:"1" doc:"Names the content: the same for the same bits from the same place."`
	URI       string `json:"uri" keep:"always" minlen:"1" doc:"The resource in canonical form. Names that begin with ./ or ../ are relative to it."`
	Digest    string `json:"digest" keep:"always" minlen:"1" doc:"SHA-256 of its bits, as subresource integrity writes it."`
	Name      string `json:"name,omitzero" keep:"always" doc:"The name that its front matter gives."`
	Proof     string `json:"proof" keep:"always" enum:"integrity signature pin local none" doc:"What vouches for it: an integrity hash, the signature of a trusted key, a version in its address, its place below root, or nothing."`
	Signer    string `json:"signer,omitzero" keep:"always" doc:"Fingerprint of the trusted key that has signed it."`
}

// IngestInput is the data of Kernel.Ingest.
type IngestInput struct {
	Target
	URI       string  `json:"uri" keep:"url" minlen:"1" maxlen:"2048" doc:"The resource: os:///…, a path below root, ./… relative to the adopted identity, or an https: address."`
	Integrity *string `json:"integrity,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"The digest that its bits must have, such as sha256-… and base64, as subresource integrity writes it."`
}

// IngestOutput is the answer of Kernel.Ingest.
type IngestOutput struct {
	ContextID string   `json:"context_id" keep:"always" doc:"Names the content in the context store."`
	Phases    []string `json:"phases" keep:"always" doc:"The phases that were done, in their order: fetch, validate, load, adopt."`
	URI       string   `json:"uri" keep:"always" doc:"The resource in canonical form."`
	Digest    string   `json:"digest" keep:"always" doc:"SHA-256 of its bits, as subresource integrity writes it."`
	Proof     string   `json:"proof" keep:"always" enum:"integrity signature pin local none" doc:"What vouches for it."`
	Content   *string  `json:"content,omitzero" keep:"always" doc:"The text after its front matter. If it does not fit a line, contentRef is set instead."`
	Ref       Value    `json:"contentRef,omitzero" keep:"always" doc:"BlobPointer to the content."`
}

// HydrateInput is the data of FileSystem.Hydrate.
type HydrateInput struct {
	Target
	URI *string `json:"uri,omitzero" keep:"url" minlen:"1" maxlen:"2048" doc:"The resource. Default: the one that the process has adopted, as it was then."`
}

// HydrateOutput is the answer of FileSystem.Hydrate.
type HydrateOutput struct {
	URI    string         `json:"uri" keep:"always" doc:"The resource in canonical form."`
	Skills []HydratedItem `json:"skills" keep:"always" doc:"What it lists as skills, in its order."`
	Tools  []HydratedItem `json:"tools" keep:"always" doc:"What it lists as tools, in its order."`
}

// HydratedItem is a skill or a tool, with its name and description.
type HydratedItem struct {
	URI         string `json:"uri" keep:"always" doc:"Its name in canonical form: what it is ingested or called by."`
	Name        string `json:"name" keep:"always" doc:"Name for people."`
	Description string `json:"description" keep:"always" doc:"What it is for; empty if it has no description."`
	Digest      string `json:"digest" keep:"always" doc:"SHA-256 of its bits."`
	Input       Value  `json:"input,omitzero" keep:"always" doc:"JSON Schema of what a tool takes."`
}

// Adoption is the result of an ingest. The front matter is a string, because its JSON may be nested too deep for
// a record.
type Adoption struct {
	Identity    Identity `json:"identity" keep:"always"`
	FrontMatter string   `json:"front_matter" keep:"always"` // one JSON object
	Content     string   `json:"content" keep:"always"`      // the text after it
}

// ToolCall is the outcome of a call of a tool, with the tool that was called.
type ToolCall struct {
	URI     string `json:"uri" keep:"always"`
	Digest  string `json:"digest" keep:"always"` // of the tool
	Outcome Value  `json:"outcome" keep:"always"`
}

// ResolveInput is the data of FileSystem.Resolve.
type ResolveInput struct {
	Target
	URI  string  `json:"uri" keep:"url" minlen:"1" maxlen:"2048" doc:"A name: os:///p/q or p/q below root, ./p and ../p relative to base, or an https: address."`
	Base *string `json:"base,omitzero" keep:"url" minlen:"1" maxlen:"2048" doc:"The name that ./ and ../ are relative to. Default: the caller's adopted identity, else root."`
}

// ResolveOutput is the answer of FileSystem.Resolve.
type ResolveOutput struct {
	URI string `json:"uri" keep:"always" doc:"The name in canonical form: an address if it is below a mounted address, else a name that begins with os:///."`
}

// The syscalls of this file.
var (
	FileSystemResolve = NewQuery[ResolveInput, ResolveOutput](Syscall{
		Type: "FileSystem.Resolve", Domain: Kernel,
		Script:      "scripts/promptware.txtar",
		Description: "Resolves a name by root, mounts and base. It opens nothing, so the name may not exist. No name leads above root.",
	})
)
