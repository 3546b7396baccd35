package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// recorded is how many entries TestLookBack's journal has.
func recorded() int {
	return testkit.Rounds(4_000, 4_000, 1_000_000)
}

// flow is how many calls have the same correlation.
const flow = 40

// remember writes the journal of a stopped kernel up to an entry, of n altogether: flows of calls, each caused by an earlier
// one, with words that are in few calls, in some and in most.
func remember(t *testing.T, p *place, upTo, n int) {
	t.Helper()
	log, _, err := journal.Open(journal.Options{Dir: p.Path("s/journal")})
	testkit.Must(t, err)
	first := int(log.Written()) + 1
	random := rand.New(rand.NewPCG(1, uint64(first)))
	for seq := first; seq <= upTo; seq++ {
		e := journal.Entry{Time: 1735000000000 + int64(seq), Origin: "https://pwos.local/", Conn: "c-1", Outcome: []byte(`{"kind":"reply","data":{"success":true}}`)}
		cause := seq - 1 - random.IntN(5)
		meta := fmt.Sprintf(`"metadata":{"id":"m-%d","timestamp":1735000000000,"correlation":"flow-%d","causation":"m-%d"}`, seq, seq/flow, cause)
		words := fmt.Sprintf("agent wrote word%d and topic%d", random.IntN(n/20), random.IntN(50))
		switch seq % 10 {
		case 0:
			e.Request, e.Outcome = fmt.Appendf(nil, `{"kind":"query","type":"Memory.Get","data":{"key":"notes/%d"},%s}`, seq/100, meta), []byte(`{"kind":"reply"}`)
		case 1:
			e.Request = fmt.Appendf(nil, `{"kind":"command","type":"Memory.Delete","data":{"key":"notes/%d"},%s}`, seq/100, meta)
			e.Outcome = []byte(`{"kind":"error","data":{"code":403,"message":"pid 0 may not"},"error":"capability.denied"}`)
		case 2, 3:
			e.Request, e.Outcome = fmt.Appendf(nil, `{"kind":"command","type":"Syscall.Echo","data":{"message":%q},%s}`, words, meta), fmt.Appendf(nil, `{"kind":"reply","data":{"echo":%q}}`, words)
		default:
			e.Request = fmt.Appendf(nil, `{"kind":"command","type":"Memory.Set","data":{"key":"notes/%d","value":%q},%s}`, seq/100, words, meta)
		}
		log.Append(&e)
		if seq%1000 == 0 || seq == upTo {
			testkit.Must(t, log.Flush())
		}
		if log.RotateDue() {
			_, err := log.Rotate()
			testkit.Must(t, err)
		}
	}
	_, err = log.Sync()
	testkit.Must(t, err)
	testkit.Must(t, log.Close())
}

// indexed builds the index of a stopped kernel again.
func indexed(t *testing.T, p *place) {
	t.Helper()
	log, _, err := journal.Open(journal.Options{Dir: p.Path("s/journal")})
	testkit.Must(t, err)
	begun := time.Now()
	x, err := index.Open(p.Path("s/projections"), index.Options{Dir: p.Path("s/journal")})
	testkit.Must(t, err)
	testkit.Must(t, x.Close())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x, err = index.Open(p.Path("s/projections"), index.Options{Dir: p.Path("s/journal"), Synced: log.Synced, Sleep: func(context.Context, time.Duration) {
		if mark, err := x.Searchable(ctx); err != nil || mark.Seq+index.BlockEntries > log.Synced() {
			cancel()
		}
	}})
	testkit.Must(t, err)
	testkit.Must(t, x.Follow(ctx))
	testkit.Must(t, x.Close())
	n := log.Synced()
	t.Logf("%d entries: indexed in %v; journal of %d MB, projections of %d MB", n, time.Since(begun).Round(time.Millisecond), p.bytes(t, "s/journal")>>20, p.bytes(t, "s/projections")>>20)
	testkit.Must(t, log.Close())
}

// TestLookBack makes typical queries of a long journal, and logs the median time of each.
func TestLookBack(t *testing.T) {
	beside(t)
	p := newPlace(t)
	n := recorded()
	agents := new(lineage)
	for part := range generations { // each generation of agents comes long after the one before
		d := p.launch(t)
		agents.generation(t, p)
		d.Stop(t)
		remember(t, p, (part+1)*n/generations, n)
	}
	indexed(t, p)
	d := p.launch(t)
	defer d.Stop(t)
	c, err := p.dial()
	testkit.Must(t, err)
	defer c.end(nil)
	random := rand.New(rand.NewPCG(3, 4))
	at := func() int { return 1000 + random.IntN(n-2000) }
	for _, ask := range []struct{ what, typ, data string }{
		{"a call by its id", "Audit.Log", `{"id":"m-SEQ"}`},
		{"what a call caused", "Audit.Log", `{"caused_by":"m-SEQ"}`},
		{"changes of a key", "Audit.Log", `{"key":"notes/KEY"}`},
		{"refusals from somewhere on", "Audit.Log", `{"denied":true,"since_seq":SEQ}`},
		{"a correlation", "Audit.Log", `{"correlation":"flow-FLOW"}`},
		{"a call whole", "Audit.Show", `{"seq":SEQ}`},
		{"a call with its cause", "Audit.Show", `{"seq":SEQ,"effects":false}`},
		{"who has changed a key", "Audit.Show", `{"key":"notes/KEY","effects":false}`},
		{"graph", "Event.Graph", `{"correlationId":"flow-FLOW"}`},
		{"graph, mermaid", "Event.Graph", `{"correlationId":"flow-FLOW","format":"mermaid"}`},
		{"search: a rare word", "Event.Search", `{"query":"wordWORD"}`},
		{"search: a rare and a frequent word", "Event.Search", `{"query":"wrote wordWORD"}`},
		{"search: a word of 1 in 50", "Event.Search", `{"query":"topicTOPIC"}`},
		{"search: two of these", "Event.Search", `{"query":"topicTOPIC topic1"}`},
		{"search: a frequent word", "Event.Search", `{"query":"agent"}`},
		{"search: a phrase of frequent words", "Event.Search", `{"query":"memory.set"}`},
		{"search: three frequent words", "Event.Search", `{"query":"agent wrote memory.set"}`},
		{"search: a prefix of 50 words", "Event.Search", `{"query":"topic*"}`},
		{"search: a prefix of very many words", "Event.Search", `{"query":"wo*"}`},
		{"search: it and a frequent word", "Event.Search", `{"query":"agent wo*"}`},
		{"search: nothing", "Event.Search", `{"query":"nowhere"}`},
	} {
		median(t, ask.what, func() {
			seq := at()
			data := strings.NewReplacer("SEQ", fmt.Sprint(seq), "KEY", fmt.Sprint(seq/100), "FLOW", fmt.Sprint(seq/flow),
				"WORD", fmt.Sprint(seq%(n/20)), "TOPIC", fmt.Sprint(seq%50)).Replace(ask.data)
			testkit.Must(t, c.call(ask.typ, data, nil))
		})
	}
	median(t, fmt.Sprintf("the causes of a call, %d links", links), func() {
		for seq, link := int64(n-random.IntN(n/2)), 0; link < links; link++ {
			var shown schema.AuditShowOutput
			testkit.Must(t, c.call("Audit.Show", fmt.Sprintf(`{"seq":%d,"effects":false}`, seq), &shown))
			cause := shown.Call(schema.RelationCause)
			if cause == nil {
				t.Fatalf("entry %d is shown without its cause", seq)
			}
			seq = cause.Entry.Seq
		}
	})
	median(t, fmt.Sprintf("the causes of an agent's call, %d links", agents.links), func() { agents.walk(t, c) })
	tellStory(t, p, n/20)
	tellStory(t, p, n-1000)
}

// generations is the number of agents in the chain of causes.
const generations = 4

// links is the number of causes of a call that are queried.
const links = 20

// median logs the median time of a query: of nine, with PWOS_LONG=1.
func median(t *testing.T, what string, ask func()) {
	t.Helper()
	var took []time.Duration
	for range testkit.Rounds(1, 1, 9) {
		begun := time.Now()
		ask()
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("%-40s %10v", what, took[len(took)/2].Round(10*time.Microsecond))
}
