package kernel

import (
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Roles that a key of the operator's may be limited to (PROTOCOL 10).
const (
	Viewer   = "viewer"   // it may ask
	Approver = "approver" // it may ask, and decide approvals
)

// subscriptions are commands that change nothing and go on to tell what a query tells.
var subscriptions = []*schema.Syscall{
	schema.AuditSubscribe.Row(), schema.JobSubscribe.Row(), schema.ApprovalSubscribe.Row(),
}

// inRole refuses what the role of the caller's key does not include: everything but queries and subscriptions, and for an approver to
// decide approvals. A query that has to be granted by name, or makes a secret, is none of them.
func inRole(call *Call) *fault.Fault {
	role, row := call.Caller.Role, call.Syscall
	asks := row.Kind == schema.KindQuery && row.Grant != schema.ByName && row != schema.CryptoDerive.Row()
	for _, one := range subscriptions {
		asks = asks || row == one
	}
	if role == "" || asks || role == Approver && row == schema.ApprovalDecide.Row() {
		return nil
	}
	return fault.RoleDenied.New("a key with the role %s may not call %s", role, call.Message.Called()).With("role", role)
}
