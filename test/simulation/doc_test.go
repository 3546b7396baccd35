// Package simulation_test runs the real kernel under a scheduler with a random seed. The seed selects when input arrives, and how much of
// it, when the kernel runs a turn, when a sync begins or completes, which operation of the disk fails, and when the power is cut. After
// each step an oracle compares the answers with the content of the disk, and the content of the disk with a model of the rules.
//
//	world_test.go      a kernel on a simulated disk, and the steps that a seed draws
//	power_test.go      starts, ends, and power cuts before any operation of the disk
//	settle_test.go     the invariants when nothing is in flight
//	replay_test.go     the state at a start, from snapshots and the journal, or from the journal alone
//	store_test.go      a store of snapshots in memory
//	link_test.go       a connection in memory whose data arrives in pieces
//	client_test.go     the requests of clients, and the order of answers
//	agents_test.go     the calls of agents and of the operator
//	blobs_test.go      values that exceed the line limit
//	effects_test.go    effects whose end the seed selects, and their invariants
//	oracle_test.go     the invariants of answers and of the journal
//	authority_test.go  the invariants of authority, mail and subscriptions, by the model of test/authority
//	policy_test.go     policy rules about the arguments of calls
//	approval_test.go   approval questions, answers and pauses
//	bounds_test.go     the bounds of connections, agents and mailboxes
//	shrink_test.go     the reduction of a failing seed
package simulation_test
