// Package domaintest runs a domain as the kernel's shell does, for the tests of domains. It fails a test if a domain
// breaks the contract of [kernel.Domain]: if Decide changes the state or returns both an error and data, if an answer
// does not match the JSON Schema of its row, or if a replay or a snapshot gives another state.
package domaintest

// TB is the part of a test that is used here; *testing.T, *testing.B, *testing.F and *rapid.T implement it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
