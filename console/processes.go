package console

import (
	"context"
	"net/http"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// list returns the processes of the kernel.
func (k *kernel) list(ctx context.Context) ([]view.Process, error) {
	out, err := ask(ctx, k, &k.quick, schema.ProcessList, &schema.ProcessListInput{})
	if err != nil {
		return nil, err
	}
	processes := make([]view.Process, len(out.Processes))
	for i, d := range out.Processes {
		processes[i].Descriptor = d
	}
	return processes, nil
}

// processes handles GET /api/processes: all processes, children after their parents.
func (s *Server) processes(w http.ResponseWriter, r *http.Request) {
	at, err := s.kernels.at(r)
	if err != nil {
		fail(w, err)
		return
	}
	processes, err := at.list(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	list := []byte{'['}
	for _, p := range view.Tree(processes) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, process(&p)...)
	}
	answer(w, view.Object(nil).Raw("processes", append(list, ']')).Close())
}

// process returns the JSON object of a process for the page.
func process(p *view.Process) []byte {
	end := ""
	if p.Exit != nil {
		end = view.EndText(p.Exit)
	}
	o := view.Object(nil).Integer("pid", p.PID).Text("name", view.Escaped(p.AgentID)).Integer("parent", p.ParentPID).
		Integer("depth", int64(p.Depth)).Text("state", view.StateText(&p.Descriptor)).Boolean("ended", p.State == view.Terminated).
		Boolean("paused", p.Paused).Text("intent", view.Escaped(p.Intent)).Text("role", view.Escaped(p.Role)).Text("priority", view.Escaped(p.Priority)).
		Text("command", view.CommandText(p.Command)).Integer("born", p.BirthTick).Text("end", end)
	if p.Restarts != nil {
		o = o.Integer("restarts", *p.Restarts)
	}
	return o.Close()
}

// approvals handles GET /api/approvals: all approval questions, latest first.
func (s *Server) approvals(w http.ResponseWriter, r *http.Request) {
	at, err := s.kernels.at(r)
	if err != nil {
		fail(w, err)
		return
	}
	var in schema.ApprovalListInput
	var list []schema.ApprovalState
	for {
		out, err := ask(r.Context(), at, &at.quick, schema.ApprovalList, &in)
		if err != nil {
			fail(w, err)
			return
		}
		list = append(list, out.Approvals...)
		if out.More == 0 || len(out.Approvals) == 0 {
			break
		}
		in.After = &list[len(list)-1].ID
	}
	questions := []byte{'['}
	for i := len(list) - 1; i >= 0; i-- {
		if len(questions) > 1 {
			questions = append(questions, ',')
		}
		questions = append(questions, question(&list[i], time.Now())...)
	}
	answer(w, view.Object(nil).Raw("approvals", append(questions, ']')).Close())
}

// question returns the JSON object of an approval question for the page. Its data is a string, so that the page shows it unchanged.
func question(q *schema.ApprovalState, now time.Time) []byte {
	o := view.Object(nil).Text("id", q.ID).Text("state", q.State).Integer("pid", q.PID).Text("who", view.ApprovalAgent(q)).
		Text("rule", view.Escaped(q.Rule)).Text("type", view.Escaped(q.Type)).Text("data", quote.JSON(string(q.Data))).
		Text("digest", q.Digest).Text("exhausted", q.Exhausted).Integer("asked", q.Asked).Integer("expires", max(q.Expires, q.Until)).
		Text("left", view.ApprovalCells(q, now)[4]).Boolean("advisory", q.Advisory).Text("why", view.Escaped(q.Why)).
		Text("binding", view.Escaped(view.Binding(q)))
	if d := q.Decided; d != nil {
		o = o.Integer("decided", d.At).Text("via", view.Escaped(d.Via)).Text("key", view.Escaped(d.Key))
	}
	return o.Close()
}
