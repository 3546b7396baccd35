package console

import (
	"context"
	"net/http"
	"strconv"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// mostEffects bounds what is shown of what a call has caused.
const mostEffects = 100

// entry is GET /api/entry/SEQ: a call whole, with what caused it and what it caused.
func (s *Server) entry(w http.ResponseWriter, r *http.Request) {
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 || seq > lastNumber {
		refuse(w, http.StatusUnprocessableEntity, "console.input", "that is no number that an entry can have")
		return
	}
	names, err := s.names(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	e, err := s.find(r.Context(), seq)
	if err != nil {
		fail(w, err)
		return
	}
	if e == nil {
		refuse(w, http.StatusNotFound, "console.not_found", "the record has no call of this number")
		return
	}
	causes, effects, err := s.around(r.Context(), e)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, view.Object(nil).Raw("row", row(e, names)).
		Text("request", view.Escaped(string(e.Request))).Text("answer", view.Escaped(string(e.Payload))).
		Text("message", view.Escaped(string(e.Error))).Integer("tick", e.Tick).
		Raw("causes", rows(causes, names)).Raw("effects", rows(effects, names)).Close())
}

// find returns the call of an entry; nil: there is none. The entry of an intent is shown with its end.
func (s *Server) find(ctx context.Context, seq int64) (*view.Entry, error) {
	since, one := seq-1, int64(1)
	found, _, err := s.logPage(ctx, &schema.AuditLogInput{SinceSeq: &since, Limit: &one})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if e := &found[0]; e.Seq == seq || e.Intent == seq {
		return e, nil
	}
	return nil, nil
}

// around returns what caused a call, and what it caused.
func (s *Server) around(ctx context.Context, e *view.Entry) (causes, effects []view.Entry, err error) {
	if cause := string(e.Causation); cause != "" {
		few := int64(4)
		if causes, _, err = s.logPage(ctx, &schema.AuditLogInput{ID: &cause, Limit: &few}); err != nil {
			return nil, nil, err
		}
	}
	if e.ID != "" {
		most := int64(mostEffects)
		effects, _, err = s.logPage(ctx, &schema.AuditLogInput{CausedBy: &e.ID, Limit: &most})
	}
	return causes, effects, err
}
