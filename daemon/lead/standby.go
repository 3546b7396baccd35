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

// rejoinEvery is how many times a standby reads the lease before it fetches entries again, so that a take-over has few to
// fetch.
const rejoinEvery = 5

// StandBy waits until the leader has not renewed its lease for the term, and takes over. It returns at once on the host
// that leads. It calls standing when it begins to wait, and returns the lease of the previous leader.
func (h *Host) StandBy(ctx context.Context, standing func()) (seen cluster.Seen, err error) {
	l, c := &leading{Host: h}, &h.Config.Cluster
	if _, err := l.keys(); err != nil {
		return seen, err
	}
	if l.conn, l.js, err = cluster.Join(h.Bus(h.Log.With("component", "cluster"))); err != nil {
		return seen, err
	}
	defer l.conn.Close()
	first, err := h.first()
	if err != nil {
		return seen, err
	}
	standing()
	h.Log.Info("standing by: another host leads this kernel, or will", "version", version.Build(), "kernel", c.Name, "lease", time.Duration(c.Lease).String())
	s := &standby{leading: l, first: first, lease: cluster.NewWatch(l.js, cluster.LeaseOptions{Kernel: c.Name, Replicas: c.Replicas, Term: time.Duration(c.Lease), Clock: cluster.BootClock})}
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
	said  string // the last message that was logged
	// replaced is how many looks in a row found an answer of JetStream in the place of the lease.
	replaced int

	followed bool // the journal was fetched once
	first    bool // this host begins the record, if the bus has none
}

// look takes the kernel over if its lease has expired, and reports whether this host now leads.
func (s *standby) look(ctx context.Context) (led bool, err error) {
	short, stop := context.WithTimeout(ctx, time.Duration(s.Config.Cluster.Lease))
	defer stop()
	seen, expired, err := s.lease.Look(short)
	if err != nil {
		return false, s.later(ctx, err)
	}
	if !s.followed {
		if err := s.preflight(short, s.conn, s.js); errors.Is(err, fault.ClusterUnsynced) {
			return false, err
		} else if err != nil {
			return false, s.later(ctx, err)
		}
		if begins, err := s.begins(short); err != nil {
			return false, s.later(ctx, err)
		} else if begins {
			return true, nil
		}
	}
	if s.replaced++; !seen.Replaced() {
		s.replaced = 0
	}
	if s.replaced == rejoinEvery { // for a term
		s.Log.Warn("a member has answers of the bus sent to the lease of this kernel: this standby cannot see whether the leader lives, and does not take over; remove that member from the bus, or take over by hand", "kernel", s.Config.Cluster.Name)
	}
	if s.looks++; !expired {
		s.seen = seen
		if !s.followed || s.looks%rejoinEvery == 0 {
			return s.follow(short, ctx)
		}
		return s.leads(short, ctx)
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

// begins reports whether this host is to begin the record of the kernel: neither it nor the bus has one. Until another host has, a
// standby that may not says so.
func (s *standby) begins(ctx context.Context) (bool, error) {
	begun, err := s.begun()
	if begun || err != nil {
		return false, err
	}
	last, err := cluster.LastKey(ctx, s.js, s.Config.Cluster.Name)
	if last != "" || err != nil {
		return false, err
	}
	if s.first {
		s.Log.Info("no host has led this kernel: this one does, since the line of the members file with its key is without standby", "kernel", s.Config.Cluster.Name)
	} else if s.said == "" {
		s.said = "no host has led this kernel"
		s.Log.Warn("no host has led this kernel: start the one whose key the members file has without standby", "kernel", s.Config.Cluster.Name)
	}
	return s.first, nil
}

// first reports whether this host begins the record of the kernel if there is none: its line of the members file is without standby. It
// fails if no host has such a line, since then nobody ever led.
func (h *Host) first() (bool, error) {
	members := cluster.NewMembers(h.Config.MembersFile())
	list, _, err := members.List()
	name, own, others := h.Config.Cluster.Name, false, false
	for _, k := range list {
		if k.Kernel == name && !k.Standby {
			own, others = own || k.Key == h.Key.Key(), others || k.Key != h.Key.Key()
		}
	}
	if begun, failed := h.begun(); err == nil && failed == nil && !begun && !own && !others {
		err = fault.ClusterStandby.New("every line of the members file %s for the kernel %s has standby, so no host may begin its record: the line of one host is that of \"pwos cluster key\", without --standby", h.Config.MembersFile(), name).With("kernel", name)
	}
	return own, errors.Join(err, members.Close())
}

// follow fetches the record, and reports whether it says that this host leads.
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
		return s.leads(ctx, life)
	}
	s.followed = true
	leader, err := journal.FindLeader(ctx, nil, s.journal(), math.MaxUint64)
	return leader != nil && leader.HostKey == s.Key.Public(), err
}

// leads reports whether this host leads although it did not when the standby began: "pwos cluster takeover" was run beside it.
func (s *standby) leads(ctx, life context.Context) (bool, error) {
	last, err := cluster.LastKey(ctx, s.js, s.Config.Cluster.Name)
	if err != nil {
		return false, s.later(life, err)
	}
	return last == s.Key.Key().String(), nil
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
