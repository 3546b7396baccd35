package main_test

import (
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/daemon/config"
)

// TestProfileFlags: paths of a profile stand below the working directory or the home directory, and zero is no absence of a budget.
func TestProfileFlags(t *testing.T) {
	t.Parallel()
	p, none := new(config.Profile), int64(0)
	p.Sandbox.Read = []string{".", "~/data", "/etc", "sub"}
	p.Budget.Calls = &none
	got := strings.Join(pwos.ProfileFlags(p, "/project", "/home/me"), " ")
	if want := "--read=/project --read=/home/me/data --read=/etc --read=/project/sub --budget=calls=0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
