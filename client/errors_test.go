package client_test

import (
	"errors"
	"testing"

	"github.com/promptware-os/pwos/client"
)

// TestLaunchFailed: the error quotes the log, unless that only repeats the reason.
func TestLaunchFailed(t *testing.T) {
	t.Parallel()
	why := errors.New(`open journal: it has "holes"`)
	const reason = `start daemon: open journal: it has "holes"`
	for _, tt := range []struct {
		name string
		tail []string
		want string
	}{
		{"no line", nil, reason},
		{"the reason again", []string{`{"level":"error","error":"open journal: it has \"holes\""}`}, reason + "; its log is /r/kernel.log"},
		{"something else", []string{"killed"}, reason + "; the last lines of /r/kernel.log:\n  killed"},
		{"the reason and more", []string{"killed", why.Error()}, reason + "; the last lines of /r/kernel.log:\n  killed\n  " + why.Error()},
	} {
		if got := client.LaunchFailed(why, "/r/kernel.log", tt.tail).Error(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
