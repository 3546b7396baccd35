package kernel

import "github.com/promptware-os/pwos/schema"

// Authorize returns nil where pid, holding token (nil: none), may call the syscall of row at tick, else the error that the
// call gets: existence, expiry and permission of CAP 2. The kernel's own commands are nobody's, so its steps are not asked about. Quotas are the resource domain's, which knows what is held.
func Authorize(pid int64, token *Token, row *schema.Syscall, tick int64) *schema.Error {
	switch {
	case row.Internal:
		return schema.Errorf(schema.Forbidden, "pid %d may not call %s: it is the kernel's own", pid, row.Type)
	case pid == Operator, row.Grant == schema.Everyone:
		return nil
	case row.Grant == schema.OperatorOnly:
		return schema.Errorf(schema.Forbidden, "pid %d may not call %s: only the operator may", pid, row.Type)
	case token != nil && token.Expired(tick):
		return schema.Errorf(schema.Forbidden, `pid %d may not call %s: its token expired after tick %d, and it is tick %d: grant it with "pwos cap grant %d %s"`,
			pid, row.Type, *token.ExpiresAtTick, tick, pid, row.Type)
	case token != nil && row.Grant == schema.ByName && !token.Allows(row):
		return schema.Errorf(schema.Forbidden, `pid %d may not call %s, which has to be granted by its name, as no pattern includes it: grant it with "pwos cap grant %d %s"`,
			pid, row.Type, pid, row.Type)
	case token == nil || !token.Allows(row):
		return schema.Errorf(schema.Forbidden, `pid %d may not call %s: grant it with "pwos cap grant %d %s"`, pid, row.Type, pid, row.Type)
	}
	return nil
}
