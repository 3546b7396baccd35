package resource_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// model is the ledger in its simplest form: thousandths of units, in integers.
type model map[at]int64

// loan is what one allocation took, and the granters that it counts against.
type loan struct {
	amount  int64
	against []int64
}

type at struct {
	pid int64
	of  string
}

func (m model) total(of string) (sum int64) {
	for k, amount := range m {
		if k.of == of {
			sum += amount
		}
	}
	return sum
}

// thousandths formats an amount of the model; the machine draws whole thousandths only.
func thousandths(units float64) int64 { return int64(math.Round(units * 1000)) }

func units() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{0, 0.1, 0.2, 0.3, 0.7, 1, 2.5, 8}),
		rapid.Map(rapid.IntRange(0, 9000), func(n int) float64 { return float64(n) / 1000 }),
	)
}

// machine runs random calls on a ledger beside the model.
type machine struct {
	*bench
	capacity map[string]float64
	model    model
	loans    map[at][]loan // the latest last
	journal  []*kernel.Call
	denied   map[fault.Kind]int
}

func newMachine(t *testing.T, capacity map[string]float64) *machine {
	m := &machine{bench: newBench(t), capacity: capacity, model: model{}, loans: map[at][]loan{}, denied: map[fault.Kind]int{}}
	m.ledger = newLedger(t, capacity, m.tokens)
	return m
}

var names = []string{"cpu", "gpu", "gone"} // gone is no pool

// grant changes or removes a random token.
func (m *machine) grant(r *rapid.T) {
	pid := rapid.Int64Range(1, 4).Draw(r, "pid")
	if rapid.IntRange(0, 5).Draw(r, "revoke") == 0 {
		delete(m.tokens, pid)
		return
	}
	t := m.tokens.grant(pid, rapid.MapOfN(rapid.SampledFrom(names), units(), 1, 3).Draw(r, "quotas"))
	if pid > 1 && rapid.Bool().Draw(r, "by an agent") {
		t.Granted.GrantedBy = rapid.Int64Range(1, pid-1).Draw(r, "by")
	}
	t.Granted.ExpiresAtTick = rapid.Ptr(rapid.Int64Range(0, 20), true).Draw(r, "expires")
}

// book allocates or releases. Capability.Check must predict the result, word for word.
func (m *machine) book(r *rapid.T) {
	typ := rapid.SampledFrom([]string{"Syscall.Alloc", "Syscall.Alloc", "Syscall.Release"}).Draw(r, "type")
	k := at{rapid.Int64Range(0, 4).Draw(r, "pid"), rapid.SampledFrom(names).Draw(r, "of")}
	amount := units().Draw(r, "amount")

	check := fmt.Sprintf(`{"pid":%d,"syscall":%q,"resource_id":%q,"amount":%v}`, k.pid, typ, k.of, amount)
	foretold, err := m.run(0, "Capability.Check", check)
	if err != nil {
		r.Fatal(err)
	}
	data := fmt.Sprintf(`{"resource_id":%q,"amount":%v}`, k.of, amount)
	answer, err := m.run(k.pid, typ, data)
	want := `{"allowed":true}`
	if err != nil {
		shown, ok := errors.AsType[*fault.Fault](err)
		if !ok {
			r.Fatal(err)
		}
		m.denied[shown.Kind]++
		want = string(schema.AppendString([]byte(`{"allowed":false,"reason":`), shown.Text())) + "}"
	} else {
		again := request(m.t, k.pid, typ, data)
		again.Data = []byte(answer)
		m.journal = append(m.journal, again)
	}
	if foretold != want {
		r.Fatalf("%s: a check says %s, the call %s", check, foretold, want)
	}
	if class := m.judge(typ, k, thousandths(amount)); (class == 0) != (err == nil) || (err != nil && fault.Of(err).Kind != class) {
		r.Fatalf("%s %s as %d: got %v, want class %d", typ, data, k.pid, err, class)
	}
}

// judge returns the code that a call must get, 0 for success, and applies it.
func (m *machine) judge(typ string, k at, amount int64) fault.Kind {
	token := m.tokens.Token(k.pid)
	for t := token; k.pid != 0; t = t.Granter { // each of them allows everything, or nothing after a revocation
		if t == nil || t.Expired(m.tick) {
			return fault.Forbidden
		}
		if t.Granted.GrantedBy == 0 {
			break
		}
	}
	capacity, pool := m.capacity[k.of]
	switch {
	case !pool: // and there are no holdings of it
		return fault.NotFound
	case typ == "Syscall.Release" && amount > m.model[k]:
		return fault.Conflict
	case typ == "Syscall.Release":
		m.model[k] -= amount
		m.loans[k] = repaid(m.loans[k], amount)
		return 0
	}
	var against []int64
	for t := token; k.pid != 0; t = t.Granter {
		if m.used(at{t.PID(), k.of})+amount > thousandths(t.Granted.ResourceQuotas[k.of]) {
			return fault.QuotaExceeded
		}
		if _, named := t.Granted.ResourceQuotas[k.of]; !named || t.Granted.GrantedBy == 0 {
			break
		}
		against = append(against, t.Granted.GrantedBy)
	}
	if m.model.total(k.of)+amount > thousandths(capacity) {
		return fault.Insufficient
	}
	if m.model[k] += amount; amount > 0 {
		m.loans[k] = append(m.loans[k], loan{amount, against})
	}
	return 0
}

// repaid is a list of loans after amount has been given back, the latest first.
func repaid(list []loan, amount int64) []loan {
	for amount > 0 {
		last := &list[len(list)-1]
		part := min(amount, last.amount)
		if last.amount -= part; last.amount == 0 {
			list = list[:len(list)-1]
		}
		amount -= part
	}
	return list
}

// used is what counts against a process's quota.
func (m *machine) used(of at) (sum int64) {
	for k, list := range m.loans {
		for _, l := range list {
			if k.of == of.of && (k.pid == of.pid || slices.Contains(l.against, of.pid)) {
				sum += l.amount
			}
		}
	}
	return sum
}

func (m *machine) free(r *rapid.T) {
	pids := rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 2).Draw(r, "pids")
	raw, err := schema.Marshal(&schema.ResourceFreeInput{PIDs: pids})
	if err != nil {
		r.Fatal(err)
	}
	m.must(0, "Resource.Free", string(raw), `{"success":true}`)
	m.journal = append(m.journal, request(m.t, 0, "Resource.Free", string(raw)))
	for k := range m.model {
		if slices.Contains(pids, k.pid) {
			delete(m.model, k)
			delete(m.loans, k)
		}
	}
}

func (m *machine) passTime(r *rapid.T) { m.tick += rapid.Int64Range(0, 3).Draw(r, "ticks") }

// check compares what is held with the model, and with the capacity.
func (m *machine) check(r *rapid.T) {
	for of, capacity := range m.capacity {
		total := m.model.total(of)
		if total > thousandths(capacity) {
			r.Fatalf("%d thousandths of %s are held, of %v", total, of, capacity)
		}
		available := fmt.Sprintf(`{"available":%v,"capacity":%v,`, float64(thousandths(capacity)-total)/1000, capacity)
		got, err := m.run(0, "Syscall.Query", `{"resource_id":"`+of+`"}`)
		if err != nil || !bytes.HasPrefix([]byte(got), []byte(available)) {
			r.Fatalf("got %s, %v, want %s", got, err, available)
		}
	}
	for pid := range int64(5) {
		var want []resource.Holding
		for _, of := range names {
			if amount := m.model[at{pid, of}]; amount > 0 {
				want = append(want, resource.Holding{PID: pid, ResourceID: of, Amount: fmt.Sprint(float64(amount) / 1000)})
			}
		}
		slices.SortFunc(want, func(a, b resource.Holding) int { return bytes.Compare([]byte(a.ResourceID), []byte(b.ResourceID)) })
		if got := sums(m.ledger.Holdings(pid)); !slices.EqualFunc(got, want, func(a, b resource.Holding) bool {
			return a.PID == b.PID && a.ResourceID == b.ResourceID && a.Amount == b.Amount
		}) {
			r.Fatalf("%d holds %v, want %v", pid, got, want)
		}
		if _, holds := slices.BinarySearch(m.ledger.Holders(), pid); holds != (len(want) > 0) {
			r.Fatalf("the holders are %v, and %d holds %v", m.ledger.Holders(), pid, want)
		}
	}
}

// sums adds up what counts against different granters.
func sums(list []resource.Holding) []resource.Holding {
	var out []resource.Holding
	for _, h := range list {
		last := len(out) - 1
		if last < 0 || out[last].ResourceID != h.ResourceID {
			out = append(out, h)
			continue
		}
		a, _ := new(big.Rat).SetString(out[last].Amount)
		b, _ := new(big.Rat).SetString(h.Amount)
		sum, _ := new(big.Rat).Add(a, b).Float64()
		out[last].Amount = fmt.Sprint(sum)
	}
	return out
}

// TestModel: no process gets more than its quota, no pool more than its capacity, a check predicts the call, and both
// a replay and a restored snapshot give the same state, whatever the configuration and the tokens are then.
func TestModel(t *testing.T) {
	t.Parallel()
	denied := map[fault.Kind]int{}
	rapid.Check(t, func(r *rapid.T) {
		m := newMachine(t, map[string]float64{"gpu": 8, "cpu": units().Draw(r, "capacity")})
		m.denied = denied
		steps := []func(*rapid.T){m.book, m.book, m.book, m.book, m.grant, m.free, m.passTime}
		for range rapid.IntRange(1, 50).Draw(r, "calls") {
			rapid.SampledFrom(steps).Draw(r, "step")(r)
			m.check(r)
		}
		state := domaintest.Snapshot(t, m.ledger)
		replayed := newLedger(t, nil, nil)
		for _, call := range m.journal {
			domaintest.Apply(replayed, call, call.Data)
		}
		restored := newLedger(t, nil, nil)
		if err := m.ledger.Snapshot()(restored.Restore); err != nil {
			r.Fatal(err)
		}
		for _, other := range []*resource.Ledger{replayed, restored} {
			if !bytes.Equal(state, domaintest.Snapshot(t, other)) {
				r.Fatalf("state %s, made again %s", state, domaintest.Snapshot(t, other))
			}
		}
	})
	for _, class := range []fault.Kind{fault.Forbidden, fault.NotFound, fault.Conflict, fault.QuotaExceeded, fault.Insufficient} {
		if denied[class] == 0 {
			t.Errorf("no call failed with class %d: the test does not cover it", class)
		}
	}
}
