// Package inside tells a process whether it belongs to an agent, by the mark that all its processes inherit.
package inside

// MarkBase is the least hard value of RLIMIT_LOCKS of a process with a mark: far above any meaningful limit, and far below infinity.
const MarkBase = 1 << 62
