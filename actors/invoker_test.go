package actors_test

import "fmt"

// invoker stands for an actor: it notes what it is handed, and may do something about it.
type invoker struct {
	handled []string
	on      func(message any)
}

func (i *invoker) InvokeUserMessage(m any)   { i.handle("user", m) }
func (i *invoker) InvokeSystemMessage(m any) { i.handle("system", m) }

func (i *invoker) EscalateFailure(reason, m any) {
	i.handled = append(i.handled, fmt.Sprint("failure ", m, ": ", reason))
}

func (i *invoker) handle(kind string, m any) {
	i.handled = append(i.handled, fmt.Sprint(kind, " ", m))
	if i.on != nil {
		i.on(m)
	}
}

// byHand is a dispatcher whose jobs are run when the test says so.
type byHand struct{ jobs []func() }

func (d *byHand) Schedule(job func()) { d.jobs = append(d.jobs, job) }

func (d *byHand) Throughput() int { return 1 }

// run runs the jobs that are scheduled, not those that they schedule, and returns how many there were.
func (d *byHand) run() int {
	jobs := d.jobs
	d.jobs = nil
	for _, job := range jobs {
		job()
	}
	return len(jobs)
}

func never(any) bool { return false }

// quiet is an invoker that notes nothing.
type quiet struct{ on func(any) }

func (q *quiet) InvokeUserMessage(m any)       { q.on(m) }
func (q *quiet) InvokeSystemMessage(m any)     { q.on(m) }
func (q *quiet) EscalateFailure(reason, m any) { panic(fmt.Sprint(reason, m)) }
