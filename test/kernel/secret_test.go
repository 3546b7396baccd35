package kernel_test

import "testing"

// TestSealedAsIs stores a sealed value: it is not a secret, and is rebuilt from the journal.
func TestSealedAsIs(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.call("Memory.Set", `{"key":"vault/k","value":"pwenc:v1:abc"}`, nil)
	d.restart(t)
	if a := d.dial(t).ask("Memory.Get", `{"key":"vault/k"}`); string(a.Data) != `"pwenc:v1:abc"` {
		t.Errorf("got %s", a.Data)
	}
}
