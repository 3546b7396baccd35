package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// Bounds of reads of the record.
const (
	mostRows   = 1000 // of a page of the log
	firstRows  = 1000 // that a stream begins with
	lastNumber = int64(1)<<53 - 1
)

// row returns the JSON object of an entry for the page.
func (k *kernel) row(e *view.Entry, names view.Names) []byte {
	who := names.Of(e.PID)
	if view.Internal(e.Type) {
		who = "kernel"
	}
	about, came := e.Parts(names)
	o := view.Object(nil).Integer("seq", e.Seq).Integer("time", e.Time).Integer("pid", e.PID).Text("who", who).
		Text("type", view.Escaped(e.Type)).Text("asked", about).Text("outcome", came).
		Text("status", view.Escaped(e.Status)).Integer("us", e.LatencyUS).Text("id", e.ID)
	for _, text := range []struct{ name, value string }{
		{"correlation", string(e.Correlation)}, {"causation", string(e.Causation)}, {"error", e.ErrorID},
	} {
		if text.value != "" {
			o = o.Text(text.name, text.value)
		}
	}
	if e.Claimed {
		o = o.Boolean("claimed", true)
	}
	if e.Intent != 0 {
		o = o.Integer("intent", e.Intent)
	}
	if view.Internal(e.Type) {
		o = o.Boolean("internal", true)
	}
	if known, ok := schema.Lookup(e.Type); ok && known.Kind == schema.KindQuery && (e.PID == 0 || k.as != "" && names[e.PID] == k.as) {
		o = o.Boolean("own", true)
	}
	if grant := view.Remedy(e); grant != nil {
		if data, err := schema.Marshal(grant); err == nil {
			o = o.Raw("grant", data)
		}
	}
	return o.Close()
}

// entriesOf returns the entries of an answer of Audit.Log, and the position of its next page.
func entriesOf(data schema.Value) (entries []view.Entry, next int64, err error) {
	members, _ := view.Members(data)
	next, _ = view.As[int64](members["next"])
	list, _ := view.Elements(members["entries"])
	for _, raw := range list {
		e, err := view.AnswerAs[schema.AuditEntry](schema.AuditLog.Type, raw)
		if err != nil {
			return nil, 0, err
		}
		entries = append(entries, view.Entry{AuditEntry: e, Raw: raw})
	}
	return entries, next, nil
}

// logPage calls Audit.Log, and returns a page of entries, the position of the next page, and the seq of the call. The entries have the
// data of requests if the kernel shows it.
func (k *kernel) logPage(ctx context.Context, in *schema.AuditLogInput) (entries []view.Entry, next, seq int64, err error) {
	yes := true
	in.Request = &yes
	reply, err := request(ctx, k, &k.slow, schema.AuditLog, in)
	if errors.Is(err, fault.CapabilityOperatorOnly) { // another kernel shows its calls without their data
		in.Request = nil
		reply, err = request(ctx, k, &k.slow, schema.AuditLog, in)
	}
	if err != nil {
		return nil, 0, 0, err
	}
	entries, next, err = entriesOf(reply.Data)
	return entries, next, client.SeqOf(&reply), err
}

// logQuery returns the input of Audit.Log for the query parameters of a request. Their names are those of the input's members.
func logQuery(q url.Values) (*schema.AuditLogInput, error) {
	in := new(schema.AuditLogInput)
	texts := map[string]**string{"type": &in.Type, "correlation": &in.Correlation, "id": &in.ID, "caused_by": &in.CausedBy, "key": &in.Key}
	numbers := map[string]**int64{"pid": &in.PID, "since_seq": &in.SinceSeq, "limit": &in.Limit}
	for name := range q {
		value := q.Get(name)
		switch {
		case texts[name] != nil:
			*texts[name] = &value
		case numbers[name] != nil:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || n > lastNumber {
				return nil, fmt.Errorf("%s is not the number of an entry", name)
			}
			*numbers[name] = &n
		case name == "kernel": // selects the kernel
		case name == "denied":
			yes := true
			in.Denied = &yes
		default:
			return nil, fmt.Errorf("the log has no filter %.40q", name)
		}
	}
	if in.Limit == nil || *in.Limit > mostRows {
		most := int64(mostRows)
		in.Limit = &most
	}
	return in, nil
}

// log handles GET /api/log: a page of the record, oldest first.
func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	in, err := logQuery(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, "console.input", err.Error())
		return
	}
	at, err := s.kernels.at(r)
	if err != nil {
		fail(w, err)
		return
	}
	entries, next, seq, err := at.logPage(r.Context(), in)
	if err != nil {
		fail(w, err)
		return
	}
	names, err := at.namesOf(r.Context(), entries, seq)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, view.Object(nil).Raw("rows", at.rows(entries, names)).Integer("next", next).Integer("end", seq).Close())
}

// rows returns a JSON array of entries.
func (k *kernel) rows(entries []view.Entry, names view.Names) []byte {
	list := []byte{'['}
	for i := range entries {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, k.row(&entries[i], names)...)
	}
	return append(list, ']')
}

// Bounds of a stream.
const (
	heartbeat  = 15 * time.Second
	batchBytes = 64 << 10
	waiting    = 256 // rows that are read but not yet written
)

// events handles GET /api/events?since=SEQ: a line of JSON for each entry of the record from SEQ on, until the request ends.
// Without since it begins firstRows entries before the end. An empty line is a heartbeat. The line {"end":WHY} says that the kernel
// has ended the subscription.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("kernel") != "" {
		fail(w, wrongInput("another kernel answers queries, and has no events: read its log"))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	since, err := s.first(ctx, r.URL.Query().Get("since"))
	if err != nil {
		fail(w, err)
		return
	}
	names, err := s.kernels.own.names(ctx)
	if err != nil {
		fail(w, err)
		return
	}
	c, err := s.kernels.own.dial(ctx) // a subscription has a connection of its own
	if err != nil {
		fail(w, err)
		return
	}
	lines, over := make(chan []byte, waiting), make(chan error, 1)
	go func() {
		defer close(lines)
		over <- errors.Join(s.kernels.own.follow(ctx, c, since, names, lines), c.Close())
	}()
	out := &stream{ResponseWriter: w, control: http.NewResponseController(w)}
	failed := out.copy(lines)
	cancel()
	if err := <-over; failed == nil && r.Context().Err() == nil {
		_ = out.send(append(view.Object(nil).Text("end", view.Escaped(err.Error())).Close(), '\n')) // the peer may have disconnected
	}
}

// first returns the number of the entry that a stream begins with. since is the query parameter, or "".
func (s *Server) first(ctx context.Context, since string) (int64, error) {
	if since != "" {
		n, err := strconv.ParseInt(since, 10, 64)
		if err != nil || n < 1 || n > lastNumber {
			return 0, wrongInput("since is not the number of an entry")
		}
		return n, nil
	}
	head, err := s.head(ctx)
	return max(1, head-firstRows), err
}

// head returns the number of the journal's last entry, which is the entry of this call itself.
func (s *Server) head(ctx context.Context) (int64, error) {
	beyond, one := lastNumber, int64(1)
	reply, err := request(ctx, s.kernels.own, &s.kernels.own.quick, schema.AuditLog, &schema.AuditLogInput{SinceSeq: &beyond, Limit: &one})
	if err != nil {
		return 0, err
	}
	return client.SeqOf(&reply), nil
}

// follow sends the rows from entry since on to lines, until ctx ends or the kernel ends the subscription. It returns the reason.
func (k *kernel) follow(ctx context.Context, c *client.Client, since int64, names view.Names, lines chan<- []byte) error {
	yes := true
	data, err := schema.AuditSubscribe.Encode(&schema.AuditSubscribeInput{SinceSeq: &since, Request: &yes})
	if err != nil {
		return err
	}
	m := schema.Message{Kind: schema.KindCommand, Type: schema.AuditSubscribe.Type, Data: data}
	return c.Subscribe(ctx, m, func(event schema.Message) error {
		e, err := view.AnswerAs[schema.AuditEntry](event.Type, event.Data)
		if err != nil {
			return err
		}
		names.Learn(&e)
		select {
		case lines <- k.row(&view.Entry{AuditEntry: e, Raw: event.Data}, names):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// stream is an answer that is written in batches.
type stream struct {
	http.ResponseWriter
	control *http.ResponseController
}

// send writes and flushes a batch. It fails if the peer does not read it within writeTime.
func (s *stream) send(batch []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := s.Write(batch); err != nil {
		return err
	}
	return s.control.Flush()
}

// copy writes lines, in batches, until the channel is closed or a write fails. It writes an empty line every heartbeat.
func (s *stream) copy(lines <-chan []byte) error {
	s.Header().Set("Content-Type", "application/x-ndjson")
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	err := s.send([]byte("\n"))
	for err == nil {
		select {
		case <-beat.C:
			err = s.send([]byte("\n"))
		case line, more := <-lines:
			if !more {
				return nil
			}
			err = s.send(gather(line, lines))
		}
	}
	return err
}

// gather returns a batch: a line and the lines that are ready in the channel, until the batch has batchBytes.
func gather(line []byte, lines <-chan []byte) []byte {
	batch := append(line, '\n')
	for len(batch) < batchBytes {
		select {
		case line, more := <-lines:
			if !more {
				return batch
			}
			batch = append(append(batch, line...), '\n')
		default:
			return batch
		}
	}
	return batch
}
