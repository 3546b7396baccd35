// Package simulation_test runs the real engine under a scheduler that a seed decides. It draws when input arrives, how much of it,
// when the kernel takes a turn, when a sync begins or completes, which operation of the disk fails, when the power goes. After each
// step an oracle compares what clients were told with what the disk holds, and what the disk holds with what the rules make of it.
//
//	world_test.go      a kernel on a disk, and the steps that a seed draws from
//	power_test.go      its lives: starts, ends, and power cuts before any operation of the disk
//	settle_test.go     what must hold when nothing is in flight
//	replay_test.go     the state of a start, of snapshots and the journal, or of the journal alone
//	store_test.go      snapshots, in memory
//	link_test.go       a connection in memory that arrives in pieces
//	client_test.go     what clients send, and the order of what they get
//	agents_test.go     what agents and their operator ask for
//	blobs_test.go      what does not fit a line
//	effects_test.go    effects that the seed ends, and what has to hold of them
//	oracle_test.go     what has to hold
//	authority_test.go  what has to hold of authority, mail and subscriptions, by the model of test/authority
//	policy_test.go     rules about the arguments of calls
//	approval_test.go   questions, answers, pauses
//	bounds_test.go     what nobody may have more of
//	shrink_test.go     what is left of a seed that fails
package simulation_test
