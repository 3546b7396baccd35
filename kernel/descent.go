package kernel

// Descends reports whether pid is a child of ancestor, a child's child, and so on. Nobody descends from itself;
// whoever was spawned descends from the operator. The dead still have their ancestors.
func Descends(processes Processes, pid, ancestor int64) bool {
	for {
		p := processes.Process(pid)
		if p == nil || p.ParentPID >= pid { // a parent is always older than its child
			return false
		}
		if p.ParentPID == ancestor {
			return true
		}
		pid = p.ParentPID
	}
}
