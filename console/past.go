package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// pastOf returns the input of Message.Replay for the query parameters of a request.
func pastOf(q url.Values) (*schema.ReplayInput, error) {
	number := func(name string) (int64, error) {
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil || n < 1 || n > lastNumber {
			return 0, fmt.Errorf("%s must be a number from 1 on", name)
		}
		return n, nil
	}
	if q.Get("kernel") != "" {
		return nil, wrongInput("the past of another kernel is not shown: open its own console")
	}
	in := new(schema.ReplayInput)
	var err error
	if in.UntilSeq, err = number("until"); err != nil {
		return nil, err
	}
	if key := q.Get("key"); key != "" {
		in.Key = &key
	}
	if q.Get("pid") != "" {
		pid, err := number("pid")
		if err != nil {
			return nil, err
		}
		in.PID = &pid
	}
	return in, nil
}

// past handles GET /api/past?until=SEQ: the state as of an entry. The answer has lines {"done","of"} with the progress, then the
// state or the error. If the page aborts the request, the call in the kernel is canceled.
func (s *Server) past(w http.ResponseWriter, r *http.Request) {
	in, err := pastOf(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, "console.input", err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	lines := &progress{stream: stream{ResponseWriter: w, control: http.NewResponseController(w)}}
	out, err := s.replay(ctx, lines, in)
	if err != nil {
		fail(lines, err)
		return
	}
	o := view.Object(nil).Integer("seq", out.Seq).Integer("time", out.Time).
		Raw("facts", facts(view.ReplayTable(out, time.UnixMilli(out.Time).Format(time.DateTime))))
	if in.Key != nil {
		o = o.Text("value", quote.JSON(string(out.Value)))
	}
	answer(lines, o.Close())
}

// progress is an answer that may begin with progress reports. The first report fixes the HTTP status at 200.
type progress struct {
	stream
	begun bool
}

func (p *progress) WriteHeader(status int) {
	if !p.begun {
		p.ResponseWriter.WriteHeader(status)
	}
}

// tell writes a progress report.
func (p *progress) tell(e *schema.ProgressedEvent) {
	if !p.begun {
		p.begun = true
		p.Header().Set("Content-Type", "application/x-ndjson")
	}
	line := view.Object(nil).Number("done", e.Progress, 0).Number("of", view.Deref(e.Total), 0).Close()
	_ = p.send(append(line, '\n')) // a disconnected peer ends the request
}

// replay calls Message.Replay on a connection of its own, so that canceling it cancels no other call.
func (s *Server) replay(ctx context.Context, lines *progress, in *schema.ReplayInput) (out *schema.ReplayOutput, err error) {
	data, err := schema.MessageReplay.Encode(in)
	if err != nil {
		return nil, err
	}
	c, err := s.kernels.own.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // the call is over
	row := schema.MessageReplay.Row()
	reply, err := c.DoReporting(ctx, schema.Message{Kind: row.Kind, Type: row.Type, Data: data}, lines.tell)
	if err != nil {
		return nil, err
	}
	return schema.MessageReplay.Decode(reply.Data)
}
