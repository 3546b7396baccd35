package trees

import "slices"

// Explain returns which of these directories, which a program may write, are kept, each as the tree that it is in, and which are not, with
// the reason. home is that of its user.
func (t *Trees) Explain(dirs []string, home string) (kept, not []string) {
	for _, dir := range dirs {
		root, why := chosen(dir, home)
		if t.Off {
			root, why = "", "[record] steps is off"
		}
		t.mu.Lock()
		one := t.trees[root]
		t.mu.Unlock()
		if why == "" && one != nil {
			why = one.uncovered()
		}
		switch {
		case why != "":
			not = append(not, dir+": "+why)
		case !slices.Contains(kept, root):
			kept = append(kept, root)
		}
	}
	return kept, not
}
