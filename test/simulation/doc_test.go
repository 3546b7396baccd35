// Package simulation_test runs the real engine under a scheduler that a seed decides: when input arrives, how much
// of it, when the kernel takes a turn, when a sync begins and completes, which operation of the disk fails, when the power goes. After
// each step an oracle compares what clients were told with what the disk holds.
//
//	world_test.go    a kernel on a disk, its lives, and the steps that a seed draws from
//	link_test.go     a connection in memory that arrives in pieces
//	client_test.go   what clients send, and the order of what they get
//	oracle_test.go   what has to hold
package simulation_test
