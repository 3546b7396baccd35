package memory_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/schema"
)

const (
	home  = "https://home.local/"
	other = "https://other.local/"
)

func process(pid int64, origin string) schema.Descriptor {
	return schema.Descriptor{PID: pid, AgentID: fmt.Sprint("agent-", pid), State: "READY", Priority: "NORMAL", Origin: origin}
}

func newDomain(t rapid.TB, processes domaintest.Table) *memory.Domain {
	t.Helper()
	d, err := memory.New(schema.Value(`{"Root":"https://home.local/"}`), processes)
	testkit.Must(t, err)
	return d
}

func run(t rapid.TB, d *memory.Domain, pid int64, origin, typ, data string) (string, error) {
	t.Helper()
	return domaintest.Run(t, d, request(t, pid, origin, typ, data))
}

func request(t rapid.TB, pid int64, origin, typ, data string) *kernel.Call {
	t.Helper()
	call := domaintest.Request(t, typ, data)
	call.PID, call.Origin = pid, origin
	return call
}
