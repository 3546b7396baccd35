package schema

import "strings"

// ToolSchema is the JSON Schema of a request's data for a caller that is always one process and hands over no files: without
// pid and tick where they say as whom and when to call, and without references (PROTOCOL 11).
func (s *Syscall) ToolSchema() Value {
	_, targeted := s.Input().New().(Targeted)
	return s.Input().Narrow(func(name string) bool {
		return !(targeted && (name == "pid" || name == "tick") || strings.HasSuffix(name, refSuffix))
	}).AppendJSONSchema(nil)
}
