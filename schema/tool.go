package schema

import (
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// ToolManifest is what a user-space syscall says of itself, in the file beside it or when it is asked to describe itself.
type ToolManifest struct {
	Name        string `json:"name,omitzero" keep:"always" maxlen:"256" doc:"Name for people. Default: the last segment of its path."`
	Description string `json:"description" keep:"always" minlen:"1" maxlen:"4096" doc:"What it does."`
	Input       Value  `json:"input,omitzero" keep:"always" doc:"JSON Schema of its input. Default: any JSON value."`
	Output      Value  `json:"output,omitzero" keep:"always" doc:"JSON Schema of its output. Default: any JSON value."`
}

// DecodeToolManifest reads a manifest strictly. Raw values alias raw. The error is an InvalidInput or an InvalidJSON.
func DecodeToolManifest(raw []byte) (*ToolManifest, *fault.Fault) {
	if !Valid(raw) {
		return nil, fault.ToolManifest.New("the tool's manifest is not one strict JSON value")
	}
	in, err := TypeOf[ToolManifest]().Decode(raw)
	if err != nil {
		return nil, err
	}
	m := in.(*ToolManifest)
	for name, value := range map[string]Value{"input": m.Input, "output": m.Output} {
		if len(value) > 0 && value[0] != '{' {
			return nil, jsontype.Invalid(name, "must be a JSON Schema: an object")
		}
	}
	return m, nil
}

// ToolDescription is what Syscall.Call answers of a path where it is to describe the tool.
type ToolDescription struct {
	ToolManifest
	URI    string `json:"uri" keep:"always" doc:"The tool, in canonical form."`
	Digest string `json:"digest" keep:"always" doc:"SHA-256 of its bits."`
	Kind   string `json:"kind" keep:"always" enum:"module program connection" doc:"How it runs; connection: an agent provides it."`
}
