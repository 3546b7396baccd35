package schema

type AttachInput struct {
	AgentID      string           `json:"agent_id" keep:"always"`
	Capabilities *SpawnCapability `json:"capabilities,omitzero" keep:"always"`
}
type AttachOutput struct {
	PID int64 `json:"pid" keep:"always"`
}

var ProcessAttach = NewCommand[AttachInput, AttachOutput](Syscall{Type: "Process.Attach"})
