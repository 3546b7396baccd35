package main_test

import (
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// TestMembers checks that flags and operands have the bounds of the call's type, and that errors use the terms of the command line.
func TestMembers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"mem", "get", "k", "--as", "-1"}, `--as: "-1" is not a PID: PIDs are numbers from 0; "pwos ps" lists them`},
		{[]string{"spawn", "x", "--expires-at-tick", "x"}, `--expires-at-tick takes a whole number, not "x"`},
		{[]string{"spawn", "x", "--expires-at-tick", "9223372036854775808"}, "--expires-at-tick takes a whole number, and 9223372036854775808 is too large"},
		{[]string{"mem", "get", "k", "--as", "9223372036854775808"}, `--as: "9223372036854775808" is not a PID: PIDs are numbers from 0; "pwos ps" lists them`},
		{[]string{"mem", "ls", "--limit", "0"}, "--limit must be at least 1, not 0"},
		{[]string{"recv", "7", "--max", "1001"}, "--max is at most 1000"},
		{[]string{"spawn", "x", "--priority", "low"}, `--priority is LOW, NORMAL, HIGH or URGENT, not "low"`},
		{[]string{"cap", "revoke", "0"}, `"0" is not a PID: PIDs are numbers from 1; "pwos ps" lists them`},
		{[]string{"audit", "log", "--kernel", "alpha", "--pid", "1@beta"}, `--pid: "1@beta" is not of the kernel alpha, which --kernel names`},
		{[]string{"mem", "rm"}, `"pwos mem rm KEY [flags]" does not take 0 arguments`},
		{[]string{"policy", "reload", "x"}, `"pwos policy reload [flags]" does not take 1 argument`},
		{[]string{"run", "--budget", "calls", "--", "x"}, `--budget takes kind=amount, not "calls"`},
		{[]string{"run", "--budget", "calls=1,calls=2", "--", "x"}, "--budget names calls twice"},
		{[]string{"run", "--budget", "moons=1", "--", "x"}, "--budget: there is no setting budget.moons: [budget] has calls, fetches, tokens, usd, wall_seconds"},
		{[]string{"run", "--limit", "processes=no", "--", "x"}, `--limit processes takes a whole number from 1 to 2147483647, not "no"`},
	} {
		if got := pwos.Misused(t.Context(), tt.args...); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.args, got, tt.want)
		}
	}
}
