package console

import (
	"context"
	"net/http"
	"strconv"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// entry handles GET /api/entry/SEQ: the entry of a call, with its causes and effects.
func (s *Server) entry(w http.ResponseWriter, r *http.Request) {
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 || seq > lastNumber {
		refuse(w, http.StatusUnprocessableEntity, "console.input", "that is not the number of an entry")
		return
	}
	at, err := s.kernels.at(r)
	if err != nil {
		fail(w, err)
		return
	}
	names, err := at.names(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	out, err := ask(r.Context(), at, &at.slow, schema.AuditShow, &schema.AuditShowInput{Seq: &seq})
	if err != nil {
		fail(w, err)
		return
	}
	call := &view.WholeCall{AuditShowOutput: *out}
	if call.Asked, err = at.questionOf(r.Context(), call); err != nil {
		fail(w, err)
		return
	}
	for pid, name := range call.Names() {
		names[pid] = name
	}
	var causes, claims, effects []view.Entry
	for i := range call.Related {
		switch one := &call.Related[i]; {
		case one.Relation == schema.RelationCause && one.Claimed:
			claims = append(claims, view.Entry{AuditEntry: one.Entry})
		case one.Relation == schema.RelationCause:
			causes = append(causes, view.Entry{AuditEntry: one.Entry})
		case one.Relation == schema.RelationEffect:
			effects = append(effects, view.Entry{AuditEntry: one.Entry})
		}
	}
	e := &view.Entry{AuditEntry: call.Entry}
	answer(w, view.Object(nil).Raw("row", at.row(e, names)).Raw("facts", facts(call.Facts(names))).
		Text("request", quote.JSON(string(e.Request))).Text("answer", quote.JSON(string(e.Payload))).
		Text("message", view.Escaped(string(e.Error))).Integer("tick", e.Tick).Boolean("more", call.More).Integer("later", call.CauseLater).
		Raw("claims", at.rows(claims, names)).Raw("causes", at.rows(causes, names)).Raw("effects", at.rows(effects, names)).Close())
}

// questionOf returns the approval question of a call; nil if there was none, the kernel no longer has it, or may not show it.
func (k *kernel) questionOf(ctx context.Context, call *view.WholeCall) (*schema.ApprovalState, error) {
	if call.Approval == nil {
		return nil, nil
	}
	list, err := ask(ctx, k, &k.quick, schema.ApprovalList, &schema.ApprovalListInput{})
	if err != nil {
		if client.Answered(err) != nil { // a viewer may not list approvals
			return nil, nil
		}
		return nil, err
	}
	for i := range list.Approvals {
		if list.Approvals[i].ID == call.Approval.Approval {
			return &list.Approvals[i], nil
		}
	}
	return nil, nil
}

// facts returns the rows of a table as a JSON array of [name, text].
func facts(t *view.Table) []byte {
	list := []byte{'['}
	for i, cells := range t.Rows {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, '[')
		for k, cell := range cells {
			if k > 0 {
				list = append(list, ',')
			}
			list = schema.AppendString(list, cell)
		}
		list = append(list, ']')
	}
	return append(list, ']')
}
