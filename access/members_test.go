package access_test

import (
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
)

const memberKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqzGgVwNZbOsF8fVqyMXHXm1nvuXzZrKJ0dEwJ8Xk5P"

func TestMembers(t *testing.T) {
	t.Parallel()
	other := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqzGgVwNZbOsF8fVqyMXHXm1nvuXzZrKJ0dEwJ8Xk5Q"
	for name, c := range map[string]struct{ text, kernels, refusal string }{
		"named by an option":     {`kernel="beta",allow="Syscall.SendMsg",role="viewer" ` + memberKey, "beta Syscall.SendMsg viewer", ""},
		"in any order":           {`role="viewer",allow="Syscall.SendMsg",kernel="beta" ` + memberKey, "beta Syscall.SendMsg viewer", ""},
		"named by the comment":   {memberKey + " beta", "beta  ", ""},
		"nothing but a name":     {`kernel="beta" ` + memberKey, "beta  ", ""},
		"no name":                {memberKey, "", "a kernel is named by"},
		"an invalid name":        {`kernel="../x" ` + memberKey, "", "a kernel is named by"},
		"a name twice":           {`kernel="a" ` + memberKey + "\n" + `kernel="a" ` + other, "a  ", "another line names the kernel a"},
		"a key twice":            {`kernel="a" ` + memberKey + "\n" + `kernel="b" ` + memberKey, "", "another"},
		"an unknown option":      {`kernel="a",from="10.0.0.0/8" ` + memberKey, "", "from is not one that pwos implements"},
		"an agent's":             {`kernel="a",agent="x" ` + memberKey, "", "not for kernels"},
		"a name without a value": {`kernel,allow="Syscall.Ping" ` + memberKey, "", "needs one value"},
		"another role":           {`kernel="a",role="operator" ` + memberKey, "", "viewer or approver"},
	} {
		members := access.ParseMembers([]byte("# members\n"+c.text+"\n"), time.UTC)
		var kernels []string
		for _, k := range members.Keys() {
			kernels = append(kernels, k.Kernel+" "+strings.Join(k.Agent.Allow, ",")+" "+k.Role)
		}
		var refusals []string
		for _, r := range members.Refused() {
			refusals = append(refusals, r.Reason)
		}
		said := strings.Join(refusals, "\n")
		if got := strings.Join(kernels, ";"); got != c.kernels || (c.refusal == "") != (said == "") || !strings.Contains(said, c.refusal) {
			t.Errorf("%s: kernels %q, want %q; refused %q, want %q", name, got, c.kernels, said, c.refusal)
		}
	}
	if keys := access.ParseAuthorizedKeys([]byte(`node="n1" `+memberKey), time.UTC); len(keys.Keys()) != 0 {
		t.Error("a node's line admits a client")
	}
	if keys := access.ParseAuthorizedKeys([]byte(`kernel="beta" `+memberKey), time.UTC); len(keys.Keys()) != 0 {
		t.Error("a kernel's line admits a client")
	}
}

// The line of a node of the bus names no kernel, and a kernel's no node.
func TestNodes(t *testing.T) {
	t.Parallel()
	other := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqzGgVwNZbOsF8fVqyMXHXm1nvuXzZrKJ0dEwJ8Xk5Q"
	for name, c := range map[string]struct{ text, nodes, refusal string }{
		"a node":                   {`node="n1.example" ` + memberKey, "n1.example", ""},
		"one that ends":            {`node="n1",expiry-time="20270101" ` + memberKey, "n1", ""},
		"beside a kernel":          {`kernel="a" ` + memberKey + "\n" + `node="n1" ` + other, "n1", ""},
		"of the name of a kernel":  {`kernel="n1" ` + memberKey + "\n" + `node="n1" ` + other, "n1", ""},
		"with the key of a kernel": {`kernel="a" ` + memberKey + "\n" + `node="n1" ` + memberKey, "", "gives this key other options"},
		"a name twice":             {`node="n1" ` + memberKey + "\n" + `node="n1" ` + other, "n1", "another line names the node n1"},
		"an invalid name":          {`node="../x" ` + memberKey, "", "a node is named by"},
		"no name":                  {`node ` + memberKey, "", "needs one value"},
		"also a kernel":            {`node="n1",kernel="a" ` + memberKey, "", "beside it only expiry-time"},
		"with a grant":             {`node="n1",allow="Syscall.Ping" ` + memberKey, "", "beside it only expiry-time"},
		"with a role":              {`node="n1",role="viewer" ` + memberKey, "", "beside it only expiry-time"},
		"a standby":                {`node="n1",standby ` + memberKey, "", "beside it only expiry-time"},
	} {
		members := access.ParseMembers([]byte(c.text+"\n"), time.UTC)
		var nodes []string
		for _, k := range members.Nodes() {
			nodes = append(nodes, k.Node)
		}
		for _, k := range members.Keys() {
			if k.Kernel == "" {
				t.Errorf("%s: a kernel without a name", name)
			}
		}
		said := ""
		for _, r := range members.Refused() {
			said += r.Reason + "\n"
		}
		if got := strings.Join(nodes, ";"); got != c.nodes || (c.refusal == "") != (said == "") || !strings.Contains(said, c.refusal) {
			t.Errorf("%s: nodes %q, want %q; refused %q, want %q", name, got, c.nodes, said, c.refusal)
		}
	}
}
