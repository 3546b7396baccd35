package state_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
)

// secrets is the number of secrets, each unique.
const secrets = 5000

// TestSecretsLeaveNoTrace passes secrets to every syscall, in either dialect and on either socket, in each way in which a
// client can (secretCalls defines what is a secret). No part of them is in a file of the state or the runtime directory, in
// the daemon's log, or in the dump of its goroutines when it is killed with calls in flight: not in their own form, in
// JSON, in base64 or in hex. Nor does an error repeat them.
func TestSecretsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // it never fails: the program ends first
	t.Logf("seed %x", seed)
	chance := rand.NewChaCha8(seed)
	known := newSearch()
	next := func() string {
		s := canary(chance)
		known.add(s)
		return s
	}
	ways := slices.Concat(secretCalls(sealer(t, p)), faults(), misfits(t))

	d := p.start(t)
	decoy := canary(chance) // not a secret: it is journaled by design, so that the search can find something
	c := p.dial(t, "kernel.sock", true)
	for _, line := range []string{
		`{"kind":"command","type":"Syscall.Spawn","data":{"child_agent_id":"a"},"metadata":{"id":"m","timestamp":1}}`,
		`{"kind":"command","type":"Memory.Set","data":{"key":"plain","value":` + quote(decoy) + `},"metadata":{"id":"m","timestamp":1}}`,
	} {
		c.write(line)
	}
	if answers := c.finish(); len(answers) != 2 || !bytes.Contains(bytes.Join(answers, nil), []byte(`"child_pid":1`)) {
		t.Fatalf("the processes for the test were not spawned: %s", answers)
	}

	used, answered := 0, make(map[string]int)
	for n := 0; used < secrets; n++ {
		socket := []string{"kernel.sock", "events.sock"}[n%2]
		before := p.dial(t, socket, false)
		for range 5 { // before the connection is authenticated
			w := ways[used%len(ways)]
			for _, line := range w.frames(next()) {
				before.write(line)
			}
			used++
		}
		before.write(`{"kind":"reply","type":"Syscall.Authenticate","data":` + quote(next()) + `}`)
		used++
		before.finish()

		c := p.dial(t, socket, true)
		opened := make(map[string]bool)
		var all []string
		for _, w := range ways {
			if used >= secrets {
				break
			}
			s := next()
			used++
			if !w.shown {
				all = append(all, s)
			}
			opened[s] = w.name == "open"
			for _, line := range w.frames(s) {
				c.write(line)
			}
		}
		_, err := c.conn.Write([]byte(`{"kind":"command","type":"Crypto.Seal","data":{"plaintext":` + quote(next()))) // it disconnects at once
		testkit.Must(t, err)
		used++
		checkAnswers(t, c.finish(), all, opened, answered)
	}
	rounds := used / len(ways) // in each, some calls of those that no syscall can fail are answered
	if answered["reply"] < 10*rounds || answered["error"] < secrets/2 || answered["opened"] < rounds {
		t.Errorf("%d secrets in %d ways were answered with %v", used, len(ways), answered)
	}
	p.look(t, known, "while it runs")
	d.End(t, syscall.SIGTERM)
	p.look(t, known, "after its end")

	d = p.start(t) // from snapshots and journal
	hold := p.dial(t, "kernel.sock", true)
	for range 200 {
		for _, line := range both("command", "Crypto.Seal", `{"plaintext":`+quote(next())+`}`, "")[:1] {
			hold.write(line)
		}
	}
	_, err := hold.conn.Write([]byte(`{"kind":"command","type":"Crypto.Seal","data":{"plaintext":` + quote(next())))
	testkit.Must(t, err)
	d.End(t, syscall.SIGQUIT)
	<-hold.done
	files := p.look(t, known, "after it was made to dump its goroutines")

	// The same search finds what is there.
	if files < 5 {
		t.Errorf("only %d files were looked at", files)
	}
	control := newSearch()
	control.add(decoy)
	if !found(t, p, control) {
		t.Error("the search does not find a text that is in the journal by design")
	}
	if dump := []byte(testkit.ReadFile(t, p.Path("output"))); !bytes.Contains(dump, []byte("SIGQUIT")) || !bytes.Contains(dump, []byte("goroutine 1 ")) {
		t.Errorf("there is no dump in %d bytes of output", len(dump))
	}
}

// checkAnswers checks the answers to ways on one connection: no error has a secret, unless it is in place of a name, and
// sealed values are shown only to those who open them.
func checkAnswers(t *testing.T, answers [][]byte, all []string, opened map[string]bool, answered map[string]int) {
	t.Helper()
	known := newSearch()
	for _, s := range all {
		known.add(s)
	}
	for _, line := range answers {
		var a struct {
			Kind, Type, Name string
			Data, Payload    json.RawMessage
		}
		testkit.Must(t, json.Unmarshal(line, &a))
		a.Data = append(a.Data, a.Payload...)
		if a.Kind == "" {
			a.Kind, a.Type = strings.Replace(a.Type, "response", "reply", 1), a.Name
		}
		answered[a.Kind]++
		var out struct{ Plaintext string }
		if a.Kind == "reply" && a.Type == "Crypto.Open" {
			testkit.Must(t, json.Unmarshal(a.Data, &out))
			if !opened[out.Plaintext] {
				t.Errorf("opened: %s", a.Data)
			}
			answered["opened"]++
			continue
		}
		if found := known.in(line); len(found) > 0 {
			t.Errorf("an answer shows a secret: %s", found[0])
		}
	}
}

// sealer returns a function that seals as the daemon does, outside of it.
func sealer(t *testing.T, p place) func(text string) string {
	t.Helper()
	found, err := (&access.Identities{Identity: p.key}).Find(t.Context())
	testkit.Must(t, err)
	s, err := access.Enroll(t.Context(), found.Signers[0])
	testkit.Must(t, err)
	held, err := s.Hold(context.Background())
	testkit.Must(t, err)
	return func(text string) string {
		value, err := held.Seal([]byte(text), nil)
		testkit.Must(t, err)
		return value
	}
}

// TestSearchFinds shows that the search finds a secret in each form, complete and in part, at any place, and nothing else.
func TestSearchFinds(t *testing.T) {
	t.Parallel()
	chance := rand.NewChaCha8([32]byte{1})
	secret, other := canary(chance), canary(chance)
	s := newSearch()
	s.add(secret)
	quoted, err := json.Marshal(secret)
	testkit.Must(t, err)
	for name, text := range map[string]string{
		"raw": secret, "beginning": secret[:window], "end": secret[len(secret)-window:], "json": string(quoted), "spelt out": spelt(secret),
		"go": fmt.Sprintf("%q", secret), "hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64":         base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 of more": base64.StdEncoding.EncodeToString([]byte("a" + secret + "bc")),
		"url of more":    base64.URLEncoding.EncodeToString([]byte(`{"plaintext":"` + secret + `"}`)),
		"half":           hex.EncodeToString([]byte(secret))[20:40],
	} {
		if len(s.in([]byte("before "+text+" after"))) == 0 {
			t.Errorf("%s is not found: %s", name, text)
		}
	}
	for _, text := range []string{"", "x", other, base64.StdEncoding.EncodeToString([]byte(other)), strings.Repeat("\x00", 1000)} {
		if found := s.in([]byte(text)); len(found) > 0 {
			t.Errorf("%q has parts of a secret: %s", text, found)
		}
	}
}
