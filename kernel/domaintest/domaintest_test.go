package domaintest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// counter is a domain that counts its commands, and breaks one rule of the contract.
type counter struct {
	fault string
	n     int
}

func (c *counter) Decide(*kernel.Call) (kernel.Result, error) {
	switch c.fault {
	case "decides and changes":
		c.n++
	case "fails and answers":
		return kernel.Result{Data: []byte(`{"success":true}`)}, fault.ProcessNotFound.New("gone")
	case "answers what it likes":
		return kernel.Result{Data: []byte(`{"success":"yes"}`)}, nil
	case "answers no JSON":
		return kernel.Result{Data: []byte(`{`)}, nil
	case "takes steps":
		return kernel.Result{Data: []byte(`{"success":true}`), Steps: []schema.Request{{}}}, nil
	}
	return kernel.Result{Data: []byte(`{"success":true}`)}, nil
}

func (c *counter) Apply(call *kernel.Call) {
	c.n++
	if c.fault == "keeps what is not in the journal" && call.Token != nil {
		c.n++
	}
}

func (c *counter) Snapshot() func(func([]byte) error) error {
	n := c.n
	return func(write func([]byte) error) error { return write([]byte{byte(n)}) }
}

func (c *counter) Reset() { c.n = 0 }

func (c *counter) Restore(chunk []byte) error {
	if c.fault != "forgets" {
		c.n = int(chunk[0])
	}
	return nil
}

// judge is a test that ends at its first fault.
type judge struct{ testing.TB }

type verdict string

func (judge) Fatal(args ...any)                 { panic(verdict(fmt.Sprint(args...))) }
func (judge) Fatalf(format string, args ...any) { panic(verdict(fmt.Sprintf(format, args...))) }

// TestFaultsAreSeen: the kit fails a test exactly if its domain breaks the contract.
func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	for mistake, want := range map[string]string{
		"none":                             "",
		"decides and changes":              "Decide changed the state",
		"fails and answers":                "both error",
		"answers what it likes":            "Memory.Set answers",
		"answers no JSON":                  "answers no JSON",
		"takes steps":                      "steps",
		"keeps what is not in the journal": "replayed",
		"forgets":                          "restored",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			got := func() (got verdict) {
				defer func() { got, _ = recover().(verdict) }()
				drive(judge{t}, mistake)
				return ""
			}()
			if !strings.Contains(string(got), want) || want == "" && got != "" {
				t.Errorf("verdict %q, want %q", got, want)
			}
		})
	}
}

func drive(t judge, fault string) {
	call := func() *kernel.Call {
		call := domaintest.Request(t, "Memory.Set", `{"key":"a","value":1}`)
		call.Token = &kernel.Token{}
		return call
	}
	if _, err := domaintest.Run(t, &counter{fault: fault}, call()); err != nil {
		t.Fatal(err)
	}
	var journal domaintest.Journal
	live := &counter{fault: fault}
	journal.Apply(live, call(), []byte(`{"success":true}`))
	journal.Check(t, live, &counter{fault: fault}, &counter{fault: fault})
}
