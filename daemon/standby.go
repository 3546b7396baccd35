package daemon

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// rejoinEvery is how many times a standby reads the lease before it fetches entries again, so that a take-over has few to
// fetch.
const rejoinEvery = 5

// standBy waits until the leader has not renewed its lease for the term, and takes over. It returns at once on the host
// that leads.
func (d *Daemon) standBy(ctx context.Context) error {
	c := &d.config.Cluster
	if !c.Standby {
		return nil
	}
	key, err := access.OpenHostKey(d.config.StateDir)
	if err != nil {
		return err
	}
	cfg := d.config
	if cfg.Origin, err = cfg.Principal(); err != nil {
		return err
	}
	l := &leading{config: &cfg, key: key, log: d.log}
	if _, err := l.keys(); err != nil {
		return err
	}
	if l.conn, l.js, err = cluster.Join(cluster.Options{Name: c.Name, Servers: c.Bus, Authority: c.Authority, Key: key, Log: d.log.With("component", "cluster")}); err != nil {
		return err
	}
	defer l.conn.Close()
	d.standing()
	d.log.Info("standing by: another host leads this kernel, or will", "version", version.Build(), "kernel", c.Name, "lease", time.Duration(c.Lease).String())
	s := &standby{leading: l, lease: cluster.NewWatch(l.js, cluster.LeaseOptions{Kernel: c.Name, Replicas: c.Replicas, Term: time.Duration(c.Lease), Clock: cluster.BootClock})}
	every := time.NewTicker(time.Duration(c.Lease) / rejoinEvery)
	defer every.Stop()
	for {
		if led, err := s.look(ctx); led || err != nil {
			d.seen = s.seen
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
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

	followed bool // the journal was fetched once
}

// look takes the kernel over if its lease has expired, and reports whether this host now leads.
func (s *standby) look(ctx context.Context) (led bool, err error) {
	short, stop := context.WithTimeout(ctx, time.Duration(s.config.Cluster.Lease))
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
	s.log.Warn("the host that leads this kernel has not renewed its lease: taking over", "kernel", s.config.Cluster.Name, "key", seen.Key, "epoch", seen.Epoch)
	t, err := s.takeOver(ctx)
	if err != nil && !errors.Is(err, fault.ClusterLeads) {
		return false, s.later(ctx, err)
	}
	s.seen = seen
	s.log.Warn("this host leads the kernel from now on", "kernel", s.config.Cluster.Name, "epoch", t.Epoch, "last", t.Last)
	return true, nil
}

// follow fetches entries. The first time, it reports whether they say that this host leads.
func (s *standby) follow(ctx, life context.Context) (led bool, err error) {
	keys, err := s.keys()
	if err == nil {
		err = s.fetch(ctx, keys)
	}
	if err != nil {
		return false, s.later(life, err)
	}
	s.said = ""
	if s.followed {
		return false, nil
	}
	s.followed = true
	leader, err := journal.FindLeader(ctx, nil, s.dir(), math.MaxUint64)
	return leader != nil && leader.HostKey == s.key.Public(), err
}

// later returns an error only if it ends the waiting: the end of the kernel's life. It logs others, since the bus may be
// reached again, and a damaged stream is for the operator to examine.
func (s *standby) later(life context.Context, err error) error {
	if life.Err() != nil {
		return life.Err()
	}
	if text := err.Error(); text != s.said {
		s.log.Warn("this standby could not take over at present", "error", err)
		s.said = text
	}
	return nil
}
