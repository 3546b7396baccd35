package main

// What the tests of the verbs look at.
var (
	PIDOf    = pidOf
	QuotasOf = quotasOf
	WithRaw  = withRaw
)
