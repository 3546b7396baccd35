package lead

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// rejoinEvery is after how many looks at the lease a standby fetches the record again, so that a take-over has little to fetch.
const rejoinEvery = 5

// StandBy waits until this host leads the kernel: until the host that does has not renewed its lease for the term, and this one has
// taken over. A host that leads already returns at once. It calls standing when it begins to wait, and returns the lease of the
// host that led before.
func (h *Host) StandBy(ctx context.Context, standing func()) (seen cluster.Seen, err error) {
	l, c := &leading{Host: h}, &h.Config.Cluster
	if _, err := l.keys(); err != nil {
		return seen, err
	}
	if l.conn, l.js, err = cluster.Join(h.Bus(h.Log.With("component", "cluster"))); err != nil {
		return seen, err
	}
	defer l.conn.Close()
	standing()
	h.Log.Info("standing by: another host leads this kernel, or will", "version", version.Build(), "kernel", c.Name, "lease", time.Duration(c.Lease).String())
	s := &standby{leading: l, lease: cluster.NewWatch(l.js, cluster.LeaseOptions{Kernel: c.Name, Replicas: c.Replicas, Term: time.Duration(c.Lease), Clock: cluster.BootClock})}
	every := time.NewTicker(time.Duration(c.Lease) / rejoinEvery)
	defer every.Stop()
	for {
		if led, err := s.look(ctx); led || err != nil {
			return s.seen, err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return seen, ctx.Err()
		}
	}
}

// standby is a host that waits to lead a kernel.
type standby struct {
	*leading
	lease *cluster.Watch
	seen  cluster.Seen
	looks int
	said  string // what was logged last

	followed bool // the record was fetched once
}

// look takes the kernel over if its lease has expired, and reports whether this host leads now.
func (s *standby) look(ctx context.Context) (led bool, err error) {
	short, stop := context.WithTimeout(ctx, time.Duration(s.Config.Cluster.Lease))
	defer stop()
	seen, expired, err := s.lease.Look(short)
	if err != nil {
		return false, s.later(ctx, err)
	}
	if s.looks++; !expired && s.followed && s.looks%rejoinEvery != 0 {
		return false, nil
	}
	if !expired {
		return s.follow(short, ctx)
	}
	s.Log.Warn("the host that leads this kernel has not renewed its lease: taking over", "kernel", s.Config.Cluster.Name, "key", seen.Key, "epoch", seen.Epoch)
	t, err := s.takeOver(ctx)
	if err != nil && !errors.Is(err, fault.ClusterLeads) {
		return false, s.later(ctx, err)
	}
	s.seen = seen
	s.Log.Warn("this host leads the kernel from now on", "kernel", s.Config.Cluster.Name, "epoch", t.Epoch, "last", t.Last)
	return true, nil
}

// follow fetches the record, and reports whether it says that this host leads: from the beginning, or never.
func (s *standby) follow(ctx, life context.Context) (led bool, err error) {
	keys, err := s.keys()
	if err == nil {
		_, err = s.fetch(ctx, s.js, keys)
	}
	if err != nil {
		return false, s.later(life, err)
	}
	s.said = ""
	if s.followed {
		return false, nil
	}
	s.followed = true
	leader, err := journal.FindLeader(ctx, nil, s.journal(), math.MaxUint64)
	return leader != nil && leader.HostKey == s.Key.Public(), err
}

// later returns only what ends the waiting: the end of the kernel's life. A bus that is away comes back, and a record that is not
// whole is for the operator to look at.
func (s *standby) later(life context.Context, err error) error {
	if life.Err() != nil {
		return life.Err()
	}
	if text := err.Error(); text != s.said {
		s.Log.Warn("this standby could not take over at present", "error", err)
		s.said = text
	}
	return nil
}
