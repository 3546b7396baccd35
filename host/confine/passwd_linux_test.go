package confine_test

import (
	"os/user"
	"testing"

	"github.com/promptware-os/pwos/host/confine"
)

// TestWithHome: one line of passwd changes, or is added.
func TestWithHome(t *testing.T) {
	t.Parallel()
	known := func(uid int) *user.User {
		if uid == 70 {
			return &user.User{Uid: "70", Gid: "71", Username: "ann", Name: "Ann O"}
		}
		if uid == 72 {
			return &user.User{Uid: "72", Gid: "72", Username: "a:b"}
		}
		return nil
	}
	const two = "root:x:0:0:root:/root:/bin/bash\nbob:x:7:7::/home/bob:/bin/sh\nbob2:x:7:7::/home/bob:/bin/sh\n"
	for name, c := range map[string]struct {
		text    string
		uid     int
		want    string
		changed bool
	}{
		"first":             {two, 0, "root:x:0:0:root:/h:/bin/bash\nbob:x:7:7::/home/bob:/bin/sh\nbob2:x:7:7::/home/bob:/bin/sh\n", true},
		"of two names":      {two, 7, "root:x:0:0:root:/root:/bin/bash\nbob:x:7:7::/h:/bin/sh\nbob2:x:7:7::/home/bob:/bin/sh\n", true},
		"the same":          {"bob:x:7:7::/h:/bin/sh\n", 7, "bob:x:7:7::/h:/bin/sh\n", false},
		"no line":           {"x\n", 70, "x\nann:x:70:71:Ann O:/h:/bin/sh\n", true},
		"empty":             {"", 70, "ann:x:70:71:Ann O:/h:/bin/sh\n", true},
		"unknown":           {two, 99, two, false},
		"a name with :":     {two, 72, two, false},
		"no end of line":    {"bob:x:7:7::/b:/bin/sh", 7, "bob:x:7:7::/h:/bin/sh\n", true},
		"half a line":       {"bob:x:7:7\n", 7, "bob:x:7:7\n", false},
		"number with zeros": {"bob:x:07:7::/b:/bin/sh\n", 7, "bob:x:07:7::/b:/bin/sh\n", false},
	} {
		if got, changed := confine.WithHome(c.text, c.uid, "/h", known); got != c.want || changed != c.changed {
			t.Errorf("%s: %q, %t, want %q", name, got, changed, c.want)
		}
	}
}
