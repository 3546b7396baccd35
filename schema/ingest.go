package schema

// The syscalls of this file.
var (
	KernelIngest = NewEffect[IngestInput, IngestOutput](Syscall{
		Type: "Kernel.Ingest", Domain: Process,
		Script:      "scripts/promptware.txtar",
		Description: "Has a process adopt a resource: fetches, validates and loads it, and switches the process's identity. A phase that fails leaves everything as it was.",
	}, Syscall{
		Type:        "Process.Adopted",
		Description: "Switches the identity of a process to that of a resource which went through all phases before, and keeps its content: it is what commits an ingest.",
	})

	FileSystemHydrate = NewEffect[HydrateInput, HydrateOutput](Syscall{
		Type: "FileSystem.Hydrate", Domain: Process,
		Script:      "scripts/promptware.txtar",
		Description: "Describes the skills and tools that the front matter of a resource lists: each is read and checked, none is started. All of them are there, or the call fails.",
	}, Syscall{
		Type:        "FileSystem.Hydrated",
		Description: "Ends a FileSystem.Hydrate.",
	})
)

// Identity is what a process has become by adopting a resource (ABI 8).
type Identity struct {
	ContextID string `json:"context_id" keep:"always" minlen:"1" doc:"Names the content: the same for the same bits from the same place."`
	URI       string `json:"uri" keep:"always" minlen:"1" doc:"The resource in canonical form: what ./ and ../ are beside."`
	Digest    string `json:"digest" keep:"always" minlen:"1" doc:"SHA-256 of its bits, as subresource integrity writes it."`
	Name      string `json:"name,omitzero" keep:"always" doc:"The name that its front matter gives."`
	Proof     string `json:"proof" keep:"always" enum:"integrity signature pin local none" doc:"What answered for it: an integrity, the signature of a trusted key, a version in its address, that it lies below root, or nothing."`
	Signer    string `json:"signer,omitzero" keep:"always" doc:"Fingerprint of the trusted key that has signed it."`
}

// IngestInput is the data of Kernel.Ingest.
type IngestInput struct {
	Target
	URI       string  `json:"uri" keep:"url" minlen:"1" maxlen:"2048" doc:"The resource: os:///…, a path below root, ./… beside the identity adopted before, or an https: address."`
	Integrity *string `json:"integrity,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"What its bits have to be, such as sha256-… and base64, as subresource integrity writes it."`
}

// IngestOutput is what Kernel.Ingest answers.
type IngestOutput struct {
	ContextID string   `json:"context_id" keep:"always" doc:"Names the content in the context store."`
	Phases    []string `json:"phases" keep:"always" doc:"The phases that were done, in their order: fetch, validate, load, adopt."`
	URI       string   `json:"uri" keep:"always" doc:"The resource in canonical form."`
	Digest    string   `json:"digest" keep:"always" doc:"SHA-256 of its bits, as subresource integrity writes it."`
	Proof     string   `json:"proof" keep:"always" enum:"integrity signature pin local none" doc:"What answered for it."`
	Content   *string  `json:"content,omitzero" keep:"always" doc:"What follows its front matter. Where that does not fit a line there is contentRef in its place."`
	Ref       Value    `json:"contentRef,omitzero" keep:"always" doc:"BlobPointer to the content."`
}

// HydrateInput is the data of FileSystem.Hydrate.
type HydrateInput struct {
	Target
	URI *string `json:"uri,omitzero" keep:"url" minlen:"1" maxlen:"2048" doc:"The resource. Default: the one that the process has adopted, as it was then."`
}

// HydrateOutput is what FileSystem.Hydrate answers.
type HydrateOutput struct {
	URI    string         `json:"uri" keep:"always" doc:"The resource in canonical form."`
	Skills []HydratedItem `json:"skills" keep:"always" doc:"What it lists as skills, in its order."`
	Tools  []HydratedItem `json:"tools" keep:"always" doc:"What it lists as tools, in its order."`
}

// HydratedItem is a skill or a tool, as far as who may use it has to know.
type HydratedItem struct {
	URI         string `json:"uri" keep:"always" doc:"Its name in canonical form: what it is ingested or called by."`
	Name        string `json:"name" keep:"always" doc:"Name for people."`
	Description string `json:"description" keep:"always" doc:"What it is for; empty where nobody said."`
	Digest      string `json:"digest" keep:"always" doc:"SHA-256 of its bits."`
	Input       Value  `json:"input,omitzero" keep:"always" doc:"JSON Schema of what a tool takes."`
}

// Adoption is what an ingest that went through its phases brings to its commit. The front matter is a text here: how deep
// its JSON is nested is its author's business, and a record has to be read back.
type Adoption struct {
	Identity    Identity `json:"identity" keep:"always"`
	FrontMatter string   `json:"front_matter" keep:"always"` // one JSON object
	Content     string   `json:"content" keep:"always"`      // what follows it
}

// ToolCall is what came of the call of a tool: the record of it, also where it failed.
type ToolCall struct {
	URI     string `json:"uri" keep:"always"`
	Digest  string `json:"digest" keep:"always"` // of the tool
	Outcome Value  `json:"outcome" keep:"always"`
}
