package console

import (
	"net/http"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// allowed describes a syscall that the page may call.
type allowed struct {
	slow  bool                     // it may read the whole journal
	check func(data []byte) string // returns why the page may not send this data; "": it may. nil: any data is allowed
}

// calls has the syscalls that the page may call, by type. The token of a page is weaker than an operator's key: it cannot make other
// calls, such as a grant that replaces another one.
var calls = map[string]allowed{
	schema.AuditMetrics.Type:     {},
	schema.AuditVerify.Type:      {slow: true},
	schema.ApprovalDecide.Type:   {},
	schema.BudgetShow.Type:       {},
	schema.CapabilityGet.Type:    {},
	schema.CapabilityGrant.Type:  {check: adds},
	schema.CapabilityRevoke.Type: {},
	schema.ProcessPause.Type:     {},
	schema.ProcessResume.Type:    {},
	schema.SyscallTerminate.Type: {},
}

// adds returns "" for the data of a grant that only adds, and a message for any other data.
func adds(data []byte) string {
	in, err := schema.CapabilityGrant.Input().Decode(data)
	switch {
	case err != nil:
		return err.Error()
	case !in.(*schema.GrantInput).Adds():
		return `the page may only add to what was granted: the mode must be "add"`
	}
	return ""
}

// call handles POST /api/call/TYPE: it sends the body to the kernel, and answers with the data and the seq of the reply.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	typ := r.PathValue("type")
	may, ok := calls[typ]
	row, known := schema.Lookup(typ)
	if !ok || !known {
		refuse(w, http.StatusForbidden, "console.call", "the page may not call this")
		return
	}
	body, ok := bodyOf(w, r)
	if !ok {
		return
	}
	if may.check != nil {
		if why := may.check(body); why != "" {
			refuse(w, http.StatusUnprocessableEntity, "console.input", why)
			return
		}
	}
	at, err := s.kernels.at(r)
	if err != nil {
		fail(w, err)
		return
	}
	lane := &at.quick
	if may.slow {
		lane = &at.slow
	}
	reply, err := at.do(r.Context(), lane, schema.Message{Kind: row.Kind, Type: typ, Data: body})
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, view.Object(nil).Raw("data", reply.Data).Integer("seq", client.SeqOf(&reply)).Close())
}
