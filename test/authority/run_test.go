package authority_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/test/authority/model"
)

// run is the run of a sequence on a kernel and on the model.
type run struct {
	sys   *system
	model *model.Model
	keys  map[keyOf]first
	conns map[int64]*client
	seen  *tally
	last  *plan // the last plan with an idempotency key
	trace []string
}

// keyOf is an idempotency key of a process; first is the call that determines the key's outcome.
type keyOf struct {
	pid int64
	key string
}

type first struct {
	body   string
	answer answer
}

// sequence runs steps on a new kernel and compares it with the model: each answer, the state after a refused
// call, the final state, and the state of a replay. Its error has the steps and the difference.
func sequence(cfg *config, steps []step, seen *tally) error {
	sys, err := boot(cfg)
	if err != nil {
		return err
	}
	pools := make(map[string]model.Tenths, len(cfg.pools))
	for name, units := range cfg.pools {
		pools[name] = model.InTenths(units)
	}
	r := &run{sys: sys, model: model.New(pools, cfg.mailbox), keys: map[keyOf]first{}, conns: map[int64]*client{}, seen: seen}
	err = r.steps(steps)
	if err == nil {
		err = r.compare()
	}
	if down := sys.shutDown(); err == nil {
		err = down
	}
	if err == nil {
		err = r.replay()
	}
	if err != nil {
		return fmt.Errorf("%w, after:\n%s", err, strings.Join(r.trace, "\n"))
	}
	return nil
}

func (r *run) conn(pid int64) *client {
	c := r.conns[pid]
	if c == nil {
		c = r.sys.connect(pid)
		r.conns[pid] = c
	}
	return c
}

func (r *run) steps(list []step) error {
	for i := range list {
		var err error
		if s := &list[i]; s.op == opAgain {
			err = r.again()
		} else {
			err = r.take(planned(r.model, s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take makes a planned call. If its key was used before (PROTOCOL 7), the same body must get the first outcome
// again, and another body a conflict; nothing may run.
func (r *run) take(p *plan) error {
	if p.key == "" || len(p.Barred) > 0 {
		return r.ask(p, append(p.Barred, p.Refused...), nil)
	}
	r.last = p
	id := keyOf{p.Who, p.key}
	if old, ok := r.keys[id]; ok {
		if old.body != p.typ+p.data {
			return r.ask(p, []int{409}, nil)
		}
		return r.ask(p, nil, &old.answer)
	}
	return r.ask(p, p.Refused, nil)
}

// again repeats the last call that had a key.
func (r *run) again() error {
	if r.last == nil {
		return nil
	}
	p := *r.last
	p.op = opAgain
	id := keyOf{p.Who, p.key}
	old, ok := r.keys[id]
	switch barred := r.model.Bar(p.Who, p.typ); {
	case len(barred) > 0:
		return r.ask(&p, barred, nil)
	case ok && old.body == p.typ+p.data:
		return r.ask(&p, nil, &old.answer)
	case ok:
		return r.ask(&p, []int{409}, nil)
	}
	return nil // it was refused, and may have another outcome now
}

// ask makes a call that must fail with one of faults, or be answered like as, or else succeed as planned.
func (r *run) ask(p *plan, faults []int, as *answer) error {
	still := len(faults) > 0 || as != nil
	var before, after map[schema.Domain][]byte
	var err error
	if still {
		if before, err = r.sys.live.snapshot(); err != nil {
			return err
		}
	}
	a, err := r.conn(p.conn).ask(p.request)
	if err != nil {
		return fmt.Errorf("%s: %w", p.request, err)
	}
	r.trace = append(r.trace, fmt.Sprintf("  %d as %d: %s -> %s", p.conn, p.Who, p.request, a))
	r.seen.add(p.op, a.code)
	switch {
	case as != nil:
		if a.code != as.code || a.text != as.text || string(a.data) != string(as.data) {
			return fmt.Errorf("answered %s the second time, %s the first", a, as)
		}
	case len(faults) > 0:
		if !slices.Contains(faults, a.code) {
			return fmt.Errorf("want one of the errors %v", faults)
		}
	case a.code != 0:
		return fmt.Errorf("want %s", p.Want)
	case !strings.HasPrefix(string(a.data), p.Want) || (!p.Open && len(a.data) != len(p.Want)):
		return fmt.Errorf("want %s", p.Want)
	default:
		p.Apply()
	}
	if p.key != "" && as == nil && len(p.Barred) == 0 && p.op != opAgain {
		r.remember(p, a)
	}
	if !still {
		return nil
	}
	if after, err = r.sys.live.snapshot(); err != nil {
		return err
	}
	if err := differ(before, after); err != nil {
		return fmt.Errorf("the call must not change the state: %w", err)
	}
	return nil
}

// remember records the call that determines a key's outcome. A denial or an internal failure does not: nothing ran.
func (r *run) remember(p *plan, a answer) {
	id := keyOf{p.Who, p.key}
	if _, ok := r.keys[id]; !ok && a.code != 403 && a.code != 410 && a.code != 429 && a.code < 500 {
		r.keys[id] = first{p.typ + p.data, a}
	}
}
