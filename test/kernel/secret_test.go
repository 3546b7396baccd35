package kernel_test

import "testing"

// TestSealedAsIs stores what is sealed already: it is no secret, and the record is what it is rebuilt from.
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
