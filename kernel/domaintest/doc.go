// Package domaintest does to a domain what the kernel's shell does, for the tests of domains. It fails a test where a domain
// breaks the contract of [kernel.Domain]: where Decide changes the state or gives both an error and data, where an answer does
// not fit the JSON Schema of its row, or where a replay or a snapshot makes another state.
package domaintest

// TB is what a test has to be able to do; *testing.T, *testing.B, *testing.F and *rapid.T can.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
