package cli

// PIDNamed returns the PID of the agent with a name.
var PIDNamed = pidNamed
