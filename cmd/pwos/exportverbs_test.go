package main

import (
	"github.com/promptware-os/pwos/schema"
)

// What the tests of the verbs look at.
var (
	PIDOf    = pidOf
	QuotasOf = quotasOf
	SendData = sendData
	MemData  = memSetData
)

// TreeOf lists processes as ps does, each with its depth.
func TreeOf(list []schema.Descriptor) (pids []int64, depths []int) {
	var processes []process
	for _, d := range list {
		processes = append(processes, process{Descriptor: d})
	}
	for _, p := range treeOf(processes) {
		pids, depths = append(pids, p.PID), append(depths, p.depth)
	}
	return pids, depths
}

// Row is a process as ps shows it to people.
func Row(d schema.Descriptor) ([]string, error) { return (&process{Descriptor: d}).row(nil) }
