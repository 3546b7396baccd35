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
	if keys := access.ParseAuthorizedKeys([]byte(`kernel="beta" `+memberKey), time.UTC); len(keys.Keys()) != 0 {
		t.Error("a kernel's line admits a client")
	}
}
