package schema

import "strings"

// ToolSchema is the JSON Schema of a request's data for a caller that is always one process and hands over no files: without
// pid and tick where they say as whom and when to call, and without references (PROTOCOL 11).
func (s *Syscall) ToolSchema() Value {
	in := s.Input().New()
	_, targeted := in.(Targeted)
	required := ""
	if r, ok := in.(Referring); ok && Missing(r) != nil {
		required, _, _ = r.Reference()
	}
	return s.Input().Narrow(func(name string) (kept, need bool) {
		dropped := targeted && (name == "pid" || name == "tick") || strings.HasSuffix(name, refSuffix)
		return !dropped, name == required
	}).AppendJSONSchema(nil)
}
