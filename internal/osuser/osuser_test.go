package osuser_test

import (
	"os/user"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestFind: a user is found by name and by number, with the same groups and home; a number needs no user.
func TestFind(t *testing.T) {
	t.Parallel()
	root, err := user.LookupId("0")
	testkit.Must(t, err)
	for _, text := range []string{"0", "000", root.Username} {
		u, err := osuser.Find(text)
		testkit.Must(t, err)
		if u.UID != 0 || strconv.Itoa(u.GID) != root.Gid || u.Name != root.Username || u.Home != root.HomeDir || len(u.Groups) == 0 {
			t.Errorf("%s is %+v", text, u)
		}
	}
	u, err := osuser.Find("3000000000")
	testkit.Must(t, err)
	if u.UID != 3000000000 || u.GID != 3000000000 || u.Name != "" || u.Home != "" || u.Groups != nil {
		t.Errorf("a number without a user is %+v", u)
	}
	for text, want := range map[string]string{
		"": "no user", "no such user": "no user", "-1": "no user", "0x0": "no user", "4294967295": "too large", "4294967296": "too large", strings.Repeat("9", 300): "too large",
	} {
		if u, err := osuser.Find(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v", text, u, err)
		}
	}
}
