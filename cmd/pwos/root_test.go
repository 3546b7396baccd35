package main_test

import (
	"slices"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// TestSubjects checks that each verb is in exactly one group, and that no group is empty.
func TestSubjects(t *testing.T) {
	t.Parallel()
	verbs, outside, subjects := pwos.Subjects()
	if len(outside) > 0 {
		t.Errorf("these verbs are in no group: %q", outside)
	}
	if slices.Sort(verbs); len(slices.Compact(slices.Clone(verbs))) != len(verbs) {
		t.Errorf("a verb is listed twice: %q", verbs)
	}
	for title, n := range subjects {
		if n == 0 || title == "" {
			t.Errorf("%q has %d verbs", title, n)
		}
	}
	if len(verbs) < 45 || len(subjects) < 5 {
		t.Errorf("%d verbs in %d groups", len(verbs), len(subjects))
	}
}
