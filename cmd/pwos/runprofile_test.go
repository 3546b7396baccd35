package main_test

import (
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/daemon/config"
)

// TestProfileFlags checks that paths are relative to the working directory or the home directory, and that a budget of 0 is kept.
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
