//go:build !linux || pwos_powercut

package lead

// bootID returns "": the id of this start of the machine is not known, or each start of the process is one, as in a test
// whose kills are power cuts.
func bootID() string { return "" }
