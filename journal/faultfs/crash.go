package faultfs

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// sector is the unit in bytes that a disk writes completely or not at all.
const sector = 512

// Outcome is what a power cut does to unsynced data.
type Outcome uint8

const (
	// LoseAll loses all unsynced data.
	LoseAll Outcome = iota
	// KeepAll loses nothing: a process was killed, not the machine.
	KeepAll
	// Prefix keeps the first changes of each file, as many as chance decides, the last of them up to any byte.
	Prefix
	// Sectors keeps any sectors of any changes, in any order. If the file grew past one that is not kept, that one reads as
	// NULs.
	Sectors

	Outcomes = 4 // number of outcomes
)

// Crash returns the disk as it is found after a power cut now. The disk itself continues unchanged. Allocated but unwritten
// blocks go to other files. Either half of an unsynced rename may be lost, which is more than real disks do.
func (d *Disk) Crash(r *rand.Rand, how Outcome) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := NewDisk()
	after.NoSync, after.NoSyncDir = d.NoSync, d.NoSyncDir
	after.full, after.free = d.full, d.free
	lost := func(durable bool) bool {
		return !durable && (how == LoseAll || how != KeepAll && r.IntN(2) == 0)
	}
	// Sorted, so that a seed always has the same outcome.
	for _, dir := range slices.Sorted(maps.Keys(d.dirs)) {
		if !lost(d.dirs[dir]) {
			after.dirs[dir] = true
		}
	}
	all := maps.Clone(d.durable)
	maps.Copy(all, d.names)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		n := d.names[path]
		if lost(d.durable[path] == n) {
			n = d.durable[path] // the file that had the name before
		}
		if n == nil || !after.dirs[filepath.Dir(path)] {
			continue
		}
		after.names[path] = newInode(n.crash(r, how))
	}
	after.durable = maps.Clone(after.names)
	return after
}

func (n *inode) crash(r *rand.Rand, how Outcome) []byte {
	disk := slices.Clone(n.disk)
	switch how {
	case KeepAll:
		return slices.Clone(n.data)
	case Prefix:
		return n.prefix(r, disk)
	case Sectors:
		return n.sectors(r, disk)
	default:
		return disk
	}
}

func (n *inode) prefix(r *rand.Rand, disk []byte) []byte {
	if len(n.log) == 0 {
		return disk
	}
	last := r.IntN(len(n.log) + 1)
	for _, c := range n.log[:last] {
		disk = c.apply(disk)
	}
	if last == len(n.log) {
		return disk
	}
	torn := n.log[last]
	if len(torn.data) == 0 {
		return disk
	}
	return put(disk, torn.off, torn.data[:r.IntN(len(torn.data))])
}

func (n *inode) sectors(r *rand.Rand, disk []byte) []byte {
	// Some cuts keep nearly everything, some nearly nothing: the former give single holes, the latter single islands.
	keep := r.Float64()
	for _, c := range n.log {
		if c.data == nil {
			if r.Float64() < keep {
				disk = resize(disk, c.off)
			}
			continue
		}
		for start := 0; start < len(c.data); {
			end := min(len(c.data), start+sector-int((c.off+int64(start))%sector))
			if r.Float64() < keep {
				disk = put(disk, c.off+int64(start), c.data[start:end])
			}
			start = end
		}
	}
	// The length may be written without the data.
	if len(n.data) > len(disk) && r.IntN(4) == 0 {
		disk = resize(disk, int64(len(n.data)))
	}
	return disk
}
