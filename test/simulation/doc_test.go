// Package simulation_test runs the real engine under a scheduler that a seed decides. It draws when input arrives, how much of it,
// when the kernel takes a turn, when a sync begins or completes, which operation of the disk fails, when the power goes. After each
// step an oracle compares what clients were told with what the disk holds.
//
//	world_test.go    a kernel on a disk, its lives, and the steps that a seed draws from
//	power_test.go    power cuts before any operation of the disk, starts and ends
//	replay_test.go   the state of a start, of snapshots and the journal, or of the journal alone
//	store_test.go    snapshots, in memory
//	link_test.go     a connection in memory that arrives in pieces
//	client_test.go   what clients send, and the order of what they get
//	blobs_test.go    what does not fit a line
//	effects_test.go  effects that the seed ends, and what has to hold of them
//	oracle_test.go   what has to hold
package simulation_test
