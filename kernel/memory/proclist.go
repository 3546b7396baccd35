package memory

import (
	"sort"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
)

// eachProc calls yield with the keys below proc/ that the call can read, in ascending order, until yield returns false.
func (d *Domain) eachProc(call *kernel.Call, yield func(key string) bool) {
	if call.PID == kernel.Operator && !yield(statusKey(kernel.Operator)) {
		return
	}
	for pid := range byDigits(lastPID(d.processes)) {
		if shows(call, d.processes.Process(pid)) && !yield(statusKey(pid)) {
			return
		}
	}
	for _, key := range []string{procCmdline, procMeminfo, procOrigins} {
		if (key != procOrigins || call.PID == kernel.Operator) && !yield(key) {
			return
		}
	}
	if call.PID == kernel.Operator || shows(call, d.processes.Process(call.PID)) {
		yield(procSelf)
	}
}

// statusKey is the key that statusOf reads.
func statusKey(pid int64) string { return procRoot + strconv.FormatInt(pid, 10) + procStatus }

// lastPID finds the greatest PID ever given. PIDs are given one after the other from 1, and a process stays in the table
// when it ends, so there is no gap below it.
func lastPID(processes kernel.Processes) int64 {
	known := func(pid int64) bool { return processes.Process(pid) != nil }
	bound := int64(1)
	for known(bound) {
		bound *= 2
	}
	return int64(sort.Search(int(bound), func(i int) bool { return !known(int64(i) + 1) }))
}

// byDigits returns the numbers from 1 to last in the order of their decimal digits: 1, 10, 11, 2.
func byDigits(last int64) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		n := int64(1)
		for range last {
			if !yield(n) {
				return
			}
			if n*10 <= last {
				n *= 10
				continue
			}
			for n%10 == 9 || n == last {
				n /= 10
			}
			n++
		}
	}
}
