package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema"
)

// conversation is what one client sends, and the answers that it must get.
type conversation struct {
	chunks []string
	want   []answered
}

// drawConversation draws frames of all sorts, how they arrive, and where they are cut.
func drawConversation(t *rapid.T, l *link) conversation {
	var c conversation
	var input strings.Builder
	for i, s := range rapid.SliceOfN(rapid.SampledFrom(sorts), 0, 200).Draw(t, "frames") {
		r := request{id: fmt.Sprint("id-", i), link: l}
		r.dialect = rapid.SampledFrom([]schema.Dialect{schema.OsMessage, schema.OsEvent}).Draw(t, "dialect")
		if rapid.Bool().Draw(t, "correlated") {
			r.correlation = fmt.Sprint("corr-", i)
		}
		line, want := s.make(r)
		input.WriteString(line + rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "ending"))
		if want != nil {
			c.want = append(c.want, *want)
		}
	}
	text := input.String()
	if rapid.Bool().Draw(t, "last line unfinished") {
		text = strings.TrimRight(text, "\r\n")
	}
	sizes := rapid.SliceOfN(rapid.IntRange(1, 1000), 1, 8).Draw(t, "chunk sizes")
	if rapid.Bool().Draw(t, "all at once") {
		sizes = []int{1 << 20}
	}
	for i := 0; text != ""; i++ {
		n := min(sizes[i%len(sizes)], len(text))
		c.chunks, text = append(c.chunks, text[:n]), text[n:]
	}
	return c
}

// TestAnswers shows the contract of a connection: each frame that needs an answer gets exactly one, in order, for any
// frames, cut at any place, with a slow peer, and with other connections.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, newFake())
	rapid.Check(t, func(t *rapid.T) {
		var clients []*client
		var talks []conversation
		for range rapid.IntRange(1, 3).Draw(t, "connections") {
			l := newLink(
				rapid.SampledFrom([]schema.Dialect{schema.OsMessage, schema.OsEvent}).Draw(t, "link's dialect"),
				rapid.SampledFrom([]int{300, schema.MaxLine}).Draw(t, "line limit"),
				rapid.SampledFrom([]int{100, 4 << 10, unbounded}).Draw(t, "output capacity"),
			)
			talks = append(talks, drawConversation(t, l))
			c := s.serve(l)
			c.t = t
			clients = append(clients, c)
		}
		for i, c := range clients {
			go func() {
				for _, chunk := range talks[i].chunks {
					c.sendRaw(chunk)
				}
				c.endInput()
				<-c.done
				c.link.out.end()
			}()
		}
		for i, c := range clients {
			var got []answered
			for _, a := range c.all() {
				got = append(got, a.seen())
			}
			if diff := cmp.Diff(talks[i].want, got); diff != "" {
				t.Errorf("answers of connection %d (-want +got):\n%s", i, diff)
			}
		}
	})
	s.endCleanly()
	if log := s.log.String(); strings.Contains(log, "[DeadLetter]") {
		t.Errorf("a message was sent to an actor that had ended:\n%s", log)
	}
}
