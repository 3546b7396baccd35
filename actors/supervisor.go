package actors

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// supervisor decides what becomes of an actor that panicked. A connection is stopped and takes nobody with it. A
// domain's panic comes from Apply, which leaves a state that nobody can vouch for: the kernel ends, and its next start
// makes the state anew.
type supervisor struct{ kernel *Kernel }

var _ actor.SupervisorStrategy = (*supervisor)(nil)

// HandleFailure is called by the library while the panic still unwinds, so the stack shows where it happened.
func (s *supervisor) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	s.kernel.log.Error("actor panicked", "actor", child.Id, "panic", reason, "stack", string(debug.Stack()))
	sup.StopChildren(child)
	if strings.HasPrefix(child.Id, "domain/") {
		s.kernel.requestShutdown(fmt.Errorf("run %s: panic: %v", child.Id, reason))
	}
}
