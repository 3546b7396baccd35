package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/schema/fault"
)

// States of a promise.
const (
	Kept     = "kept"
	Broken   = "broken"
	Unstated = "unknown" // the bus does not say
)

// Promise is what a kernel relies on its bus for.
type Promise struct {
	Name   string
	State  string // Kept, Broken or Unstated
	Needed bool   // what quorum promises rests on it
	Found  string // what is wrong, and what to do; "": nothing
}

// syncs is the promise that a write is on disk before it is acknowledged. A client of a NATS server cannot ask for that, so a node of
// pwos-bus states it.
const syncs = "sync"

// Promises are the findings of a preflight.
type Promises []Promise

// Refusal returns why a kernel whose answers wait for the bus must not start; nil if it may. unsynced says that the operator accepts a bus
// that does not sync.
func (all Promises) Refusal(unsynced bool) error {
	for _, p := range all {
		if p.Needed && p.State != Kept && (p.Name != syncs || !unsynced) {
			return fault.ClusterUnsynced.New("answers cannot wait for this bus: %s", p.Found)
		}
	}
	return nil
}

// Statement is what a node of pwos-bus says of itself.
type Statement struct {
	Node  string
	Syncs bool   // each write, before it acknowledges it
	Links string // with other nodes; "": there are none
}

// KeyedLinks says that links between nodes use TLS, and keys that both ends know.
const KeyedLinks = "keyed"

const (
	makeStatement  = "statement"
	nodeHeader     = "Pwos-Node"
	syncHeader     = "Pwos-Sync"
	linksHeader    = "Pwos-Links"
	syncAlways     = "always"
	statementsTime = 2 * time.Second
)

// StatementSubject is the subject at which kernels ask the nodes of the bus for their statements.
func StatementSubject() string { return MakeSubject(makeStatement, "*") }

// IsStatement reports whether a request at a MakeSubject is for a statement, which every node answers.
func IsStatement(what string) bool { return what == makeStatement }

// Headers returns the statement as the headers of an answer.
func (s Statement) Headers() nats.Header {
	h := nats.Header{nodeHeader: {s.Node}, linksHeader: {s.Links}, syncHeader: {""}}
	if s.Syncs {
		h.Set(syncHeader, syncAlways)
	}
	return h
}

// statements asks the nodes of the bus for their statements, until enough is true. Without a node of pwos-bus there are none. Members may
// publish to the inbox, and cannot guess its name.
func statements(ctx context.Context, conn *nats.Conn, kernel string, enough func(map[string]Statement) bool) (map[string]Statement, error) {
	ctx, cancel := context.WithTimeout(ctx, statementsTime)
	defer cancel()
	inbox := InboxPrefix(kernel) + "." + rand.Text()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("ask nodes for statements: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection may have ended
	if err := conn.PublishRequest(MakeSubject(makeStatement, kernel), inbox, nil); err != nil {
		return nil, fmt.Errorf("ask nodes for statements: %w", err)
	}
	all := make(map[string]Statement)
	for !enough(all) {
		m, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("ask nodes for statements: %w", err)
		}
		if node := m.Header.Get(nodeHeader); node != "" {
			all[node] = Statement{Node: node, Syncs: m.Header.Get(syncHeader) == syncAlways, Links: m.Header.Get(linksHeader)}
		}
	}
	return all, nil
}

// Preflight finds out which promises the bus keeps to a kernel that wants this many replicas. It changes nothing. It fails if the bus does
// not answer.
func Preflight(ctx context.Context, conn *nats.Conn, js jetstream.JetStream, kernel string, replicas int) (Promises, error) {
	if _, err := js.AccountInfo(ctx); err != nil {
		return nil, fault.ClusterBus.New("the bus does not answer requests for streams: enable JetStream on it, or use pwos-bus (%v)", err)
	}
	var info *jetstream.StreamInfo
	switch stream, err := js.Stream(ctx, Stream(kernel)); {
	case err == nil:
		info = stream.CachedInfo()
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fault.ClusterBus.New("look at stream: %v", err)
	}
	nodes := nodesOf(info)
	majority := max(len(nodes), 1)/2 + 1
	if info == nil {
		majority = replicas/2 + 1
	}
	synced := func(said map[string]Statement) (n int) {
		for node, s := range said {
			if s.Syncs && (info == nil || len(nodes) == 0 || slices.Contains(nodes, node)) {
				n++
			}
		}
		return n
	}
	said, err := statements(ctx, conn, kernel, func(said map[string]Statement) bool { return synced(said) >= majority })
	if err != nil {
		return nil, err
	}
	all := Promises{syncPromise(said, synced(said), majority), linksPromise(said)}
	if info != nil {
		all = append(all, streamPromises(info, kernel, replicas)...)
	}
	return append(all, connPromises(conn)...), nil
}

// nodesOf returns the nodes that have a stream.
func nodesOf(info *jetstream.StreamInfo) (nodes []string) {
	if info == nil || info.Cluster == nil {
		return nil
	}
	if info.Cluster.Leader != "" {
		nodes = append(nodes, info.Cluster.Leader)
	}
	for _, r := range info.Cluster.Replicas {
		nodes = append(nodes, r.Name)
	}
	return nodes
}

// syncPromise is that of the nodes' disks. A majority is enough, since a node that is away states nothing.
func syncPromise(said map[string]Statement, synced, majority int) Promise {
	p := Promise{Name: syncs, State: Kept, Needed: true}
	for _, s := range said {
		if !s.Syncs {
			p.State, p.Found = Broken, "the node "+s.Node+" acknowledges writes before it has synced them: a power cut may lose what was answered"
			return p
		}
	}
	if synced < majority {
		p.State = Unstated
		p.Found = fmt.Sprintf("of the nodes that store the copy %d must state that they sync each write before they acknowledge it, and %d do, so a power cut may lose what was answered: "+
			"use pwos-bus, or set sync_interval: always in each NATS server, and cluster.accept_unsynced = true here", majority, synced)
	}
	return p
}

func linksPromise(said map[string]Statement) Promise {
	p := Promise{Name: "links", State: Unstated, Found: "no node states that links between nodes of the bus use TLS and known keys: use pwos-bus, or see to that"}
	for _, s := range said {
		if p.State, p.Found = Kept, ""; s.Links != "" && s.Links != KeyedLinks {
			return Promise{Name: p.Name, State: Broken, Found: "the node " + s.Node + " takes other nodes whose keys it does not know"}
		}
	}
	return p
}

// clockTolerance is how far the clock of the bus may be from this host's. Nothing but the expiry of certificates and lines goes by it.
const clockTolerance = time.Minute

func streamPromises(info *jetstream.StreamInfo, kernel string, replicas int) Promises {
	c, want := &info.Config, StreamConfig(kernel, replicas)
	var loses, open []string
	for what, wrong := range map[string]bool{
		"is in memory":            c.Storage != want.Storage,
		"drops what is older":     c.MaxAge != 0,
		"drops what was read":     c.Retention != want.Retention,
		"drops for new ones":      c.Discard != want.Discard && (c.MaxBytes > 0 || c.MaxMsgs > 0),
		"keeps only the last few": c.MaxMsgsPerSubject > 0,
	} {
		if wrong {
			loses = append(loses, what)
		}
	}
	for what, wrong := range map[string]bool{
		"lets messages be deleted":   !c.DenyDelete || !c.DenyPurge,
		"allows direct reads":        c.AllowDirect,
		"publishes messages again":   c.RePublish != nil,
		"has other subjects":         !slices.Equal(c.Subjects, want.Subjects) || c.SubjectTransform != nil,
		"takes messages of a stream": c.Mirror != nil || len(c.Sources) > 0,
	} {
		if wrong {
			open = append(open, what)
		}
	}
	all := Promises{
		finding("stream", true, len(loses) > 0, "the stream %s %s: remove it, and let pwos-bus or the kernel make it", c.Name, joined(loses)),
		finding("stream_closed", false, len(open) > 0, "the stream %s %s: change its settings", c.Name, joined(open)),
		finding("replicas", true, c.Replicas < replicas, "the stream %s has %d replicas, and cluster.replicas asks for %d: have the operator of the bus raise that of the stream, or set cluster.replicas = %[2]d", c.Name, c.Replicas, replicas),
	}
	if !info.TimeStamp.IsZero() {
		ahead := time.Until(info.TimeStamp).Round(time.Second)
		all = append(all, finding("clock", false, ahead.Abs() > clockTolerance, "the clock of the bus is %v ahead of this host's: set them", ahead))
	}
	return all
}

func connPromises(conn *nats.Conn) Promises {
	_, noTLS := conn.TLSConnectionState()
	at, err := netip.ParseAddrPort(conn.ConnectedAddr())
	local := err == nil && at.Addr().Unmap().IsLoopback()
	return Promises{
		finding("tls", false, noTLS != nil && !local, "anybody between this host and the bus can read and change the traffic: use a certificate, and tls:// in cluster.bus"),
		finding("max_payload", false, conn.MaxPayload() < MaxMessage, "messages between kernels have at most %d bytes there, less than the %d of pwos-bus: raise max_payload", conn.MaxPayload(), MaxMessage),
	}
}

func finding(name string, needed, broken bool, format string, args ...any) Promise {
	if !broken {
		return Promise{Name: name, State: Kept, Needed: needed}
	}
	return Promise{Name: name, State: Broken, Needed: needed, Found: fmt.Sprintf(format, args...)}
}

func joined(list []string) string {
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// gate refuses to count what a bus acknowledges that does not keep what quorum promises. The nodes of a bus do not change their minds, so
// it asks once for each that the connection goes to.
func (c *Copy) gate(ctx context.Context) error {
	node := c.conn.ConnectedServerName() + " " + c.conn.ConnectedServerId()
	if c.passed[node] {
		return nil
	}
	all, err := Preflight(ctx, c.conn, c.stream, c.name, c.replicas)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.State != Kept {
			c.log.Warn("the bus does not keep a promise", "promise", p.Name, "state", p.State, "reason", p.Found)
		}
	}
	if err := all.Refusal(c.unsynced); c.quorum && err != nil {
		return err
	}
	if c.passed == nil {
		c.passed = make(map[string]bool)
	}
	c.passed[node] = true
	return nil
}
