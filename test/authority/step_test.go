package authority_test

import (
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/test/authority/model"
)

// step is one command of a sequence. It is drawn before the sequence runs, and its numbers are mapped to processes when it runs, so
// that a sequence stays valid when steps are removed.
type step struct {
	op     int
	by, on int   // the caller and the subject, modulo the number of processes
	as     int   // how the call names its process
	offer  offer // the grant
	add    bool  // add to the earlier grant
	pool   int
	amount model.Tenths
	ticks  int64 // ticks by which the clock advances, or the tick that the call names
	key    int   // idempotency key; 0: none
}

// How a call names its process.
const (
	itself       = iota // by its own connection
	byOperator          // the operator's connection names it
	underAnother        // its own connection names another process
)

// offer is a grant. Offers of what the granter has itself are frequent, since others are usually refused.
type offer struct {
	like    int // drawn, ownGrant or less
	none    bool
	allowed []string
	quotas  map[string]model.Tenths
	expires *int64
}

const (
	drawn = iota
	ownGrant
	less
)

// noPool is a resource that does not exist.
const noPool = "tpu"

var (
	patterns = []string{
		"*", "Syscall.*", "Memory.*", "Capability.*", "SYS_ALLOC", "Syscall.Alloc", "SYS_RELEASE", "SYS_SPAWN", "Syscall.Spawn",
		"SYS_TERMINATE", "SYS_SEND_MSG", "SYS_COMMIT_DELTA", "Memory.Set", "Capability.Grant", "Capability.Revoke",
		"Capability.RevokeExpired", "Capability.Check", "Clock.Advance",
	}
	poolNames = []string{"gpu", "ram", noPool}
	amounts   = []model.Tenths{0, 1, 2, 3, 7, 10, 25}
	quotas    = []model.Tenths{0, 1, 3, 10, 30, model.DefaultQuota}
	agents    = []string{"a", "b", "c", "d"}
)

// weights are the relative frequencies of the commands.
var weights = []struct{ op, weight int }{
	{opSpawn, 4},
	{opGrant, 4},
	{opGrantDefault, 2},
	{opRevoke, 2},
	{opRevokeExpired, 1},
	{opTerminate, 2},
	{opAlloc, 6},
	{opRelease, 3},
	{opSendMsg, 3},
	{opSet, 2},
	{opCommitDelta, 2},
	{opAdvance, 2},
	{opCheck, 2},
	{opAgain, 3},
}

func weighted() []int {
	var ops []int
	for _, w := range weights {
		for range w.weight {
			ops = append(ops, w.op)
		}
	}
	return ops
}

// sequences draws steps: one to three spawns with wide grants, then 7 to 17 of any kind.
func sequences() *rapid.Generator[[]step] {
	op, small := rapid.SampledFrom(weighted()), rapid.IntRange(0, 7)
	how := rapid.SampledFrom([]int{itself, itself, itself, itself, byOperator, byOperator, underAnother})
	like := rapid.SampledFrom([]int{drawn, drawn, ownGrant, less})
	pool := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 1, 1, 2})
	amount, quota := rapid.SampledFrom(amounts), rapid.SampledFrom(quotas)
	expires := rapid.Ptr(rapid.Int64Range(0, 6), true)
	allowed := rapid.SliceOfN(rapid.SampledFrom(patterns), 1, 4)
	granted := rapid.MapOfN(rapid.SampledFrom([]string{"gpu", "gpu", "gpu", "ram", "ram", "ram", noPool}), quota, 0, 2)
	ticks, key := rapid.Int64Range(0, 3), rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2})
	add := rapid.Bool()
	first := rapid.Custom(func(t *rapid.T) step {
		return step{op: opSpawn, on: small.Draw(t, "name"), by: small.Draw(t, "by"), offer: offer{
			allowed: []string{"*"}, quotas: map[string]model.Tenths{"gpu": quota.Draw(t, "gpu"), "ram": quota.Draw(t, "ram")},
		}}
	})
	any := rapid.Custom(func(t *rapid.T) step {
		s := step{op: op.Draw(t, "op"), by: small.Draw(t, "by")}
		switch s.op {
		case opSpawn, opGrant:
			s.offer = offer{like: like.Draw(t, "like"), expires: expires.Draw(t, "expires")}
			if s.offer.like == drawn {
				s.offer.allowed, s.offer.quotas = allowed.Draw(t, "allowed"), granted.Draw(t, "quotas")
			}
			s.offer.none = s.op == opSpawn && small.Draw(t, "none") == 0
			s.add = s.op == opGrant && add.Draw(t, "add")
		case opAdvance:
			s.ticks = ticks.Draw(t, "ticks")
			return s
		case opAgain, opRevokeExpired:
			return s
		}
		s.on, s.as = small.Draw(t, "on"), how.Draw(t, "as")
		s.pool, s.amount = pool.Draw(t, "pool"), amount.Draw(t, "amount")
		s.ticks, s.key = ticks.Draw(t, "ticks"), key.Draw(t, "key")
		return s
	})
	prelude, rest := rapid.SliceOfN(first, 1, 3), rapid.SliceOfN(any, 7, 17)
	return rapid.Custom(func(t *rapid.T) []step {
		return append(prelude.Draw(t, "first"), rest.Draw(t, "rest")...)
	})
}
