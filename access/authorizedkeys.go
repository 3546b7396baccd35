package access

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// maxKeysLine bounds a line of authorized_keys in bytes.
	maxKeysLine = 16 << 10
	// maxKeysFile bounds the whole file in bytes.
	maxKeysFile = 1 << 20
)

// AuthorizedKey is a line of authorized_keys that lets its key in.
type AuthorizedKey struct {
	Key     PublicKey
	Comment string
	Line    int       // from 1
	NoTouch bool      // no-touch-required: a security key need not be touched
	Expires time.Time // expiry-time, the last moment of the key; zero: it does not expire
	Role    string    // role: viewer or approver, what the operator's key is limited to; empty: nothing
	// Agent is what the key's holder may do. Nil: it is the operator, who may do everything that Role allows. Only a line without
	// options, but for no-touch-required and role, is the operator's; with role it may expire too.
	Agent *AgentGrant
}

// AgentGrant is what the options of an agent's key grant it (CAP 2). Nothing that it does not name is granted.
type AgentGrant struct {
	Name   string             // agent: its agent_id; empty where the line does not say
	Origin string             // origin: an absolute URL; empty where the line does not say
	Allow  []string           // allow: types, codes, "Domain.*" or "*", sorted; well formed, but perhaps of no syscall that there is
	Quotas map[string]float64 // quota: most units to hold at once, by resource
}

// RefusedLine is a line of authorized_keys that lets nobody in.
type RefusedLine struct {
	Line        int    // from 1
	Fingerprint string // of its key, where it could be read
	Reason      string // fit for a log: printable, and nothing of the line but the names of its options
}

// AuthorizedKeys is what a file of authorized keys says. It is immutable.
//
// It fails closed. A line with an option that we do not implement, or in a form that leaves doubts, refuses its key: on that
// line and on any other, for nobody can say which of them was meant. So do two lines that say different things about one key.
type AuthorizedKeys struct {
	keys    []*AuthorizedKey // by line
	byKey   map[PublicKey]*AuthorizedKey
	refused []RefusedLine
	banned  map[PublicKey]bool
}

// ParseAuthorizedKeys reads the text of a file of authorized keys (sshd(8)). Times without a Z are of the given zone.
func ParseAuthorizedKeys(text []byte, zone *time.Location) *AuthorizedKeys {
	a := &AuthorizedKeys{byKey: map[PublicKey]*AuthorizedKey{}, banned: map[PublicKey]bool{}}
	number := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		number++
		if line = strings.Trim(strings.TrimSuffix(line, "\r"), " \t"); line == "" || line[0] == '#' {
			continue
		}
		a.add(number, line, zone)
	}
	for _, k := range a.keys {
		if a.banned[k.Key] && !slices.ContainsFunc(a.refused, func(r RefusedLine) bool { return r.Line == k.Line }) {
			a.refuse(k.Line, k.Key, "another line refuses this key or grants it something else: leave one line of it")
		}
	}
	a.keys = slices.DeleteFunc(a.keys, func(k *AuthorizedKey) bool { return a.banned[k.Key] })
	slices.SortStableFunc(a.refused, func(x, y RefusedLine) int { return cmp.Compare(x.Line, y.Line) })
	return a
}

// add takes one line in.
func (a *AuthorizedKeys) add(number int, line string, zone *time.Location) {
	k, err := parseKeysLine(line, zone)
	if err != nil {
		banned := keysIn(line)
		if len(banned) == 0 {
			banned = []PublicKey{{}}
		}
		a.refuse(number, banned[0], err.Text())
		for _, key := range banned {
			a.banned[key] = true
		}
		return
	}
	k.Line = number
	switch first := a.byKey[k.Key]; {
	case first == nil:
		a.byKey[k.Key] = k
		a.keys = append(a.keys, k)
	case first.Options() == k.Options():
		a.refuse(number, k.Key, "line "+strconv.Itoa(first.Line)+" says the same of this key: remove one of them")
	default:
		a.banned[k.Key] = true
		a.refuse(number, k.Key, "line "+strconv.Itoa(first.Line)+" grants this key something else: leave one of them")
	}
}

func (a *AuthorizedKeys) refuse(line int, key PublicKey, reason string) {
	a.refused = append(a.refused, RefusedLine{Line: line, Fingerprint: key.Fingerprint(), Reason: reason})
}

// Keys returns the lines that let somebody in, in the order of the file. They are not to be changed.
func (a *AuthorizedKeys) Keys() []*AuthorizedKey { return a.keys }

// Refused returns the lines that do not, in the order of the file.
func (a *AuthorizedKeys) Refused() []RefusedLine { return a.refused }

// Lookup returns the line of a key. The error is an *fault.Fault that says what the daemon accepts.
func (a *AuthorizedKeys) Lookup(key PublicKey, now time.Time) (*AuthorizedKey, error) {
	k := a.byKey[key]
	switch {
	case a.banned[key]:
		return nil, fault.AuthKeyType.New("the line of the key %s in authorized_keys is refused: see \"pwos auth keys\" or the daemon's log",
			key.Fingerprint()).With("key", key.Fingerprint())
	case k == nil:
		return nil, fault.AuthNoSuchKey.New("the key %s (%s) is not in the daemon's authorized_keys: add it there, or use one of the %d that are (%s)",
			key.Fingerprint(), key.typ, len(a.keys), AcceptedTypes).With("key", key.Fingerprint())
	case !k.Expires.IsZero() && now.After(k.Expires):
		return nil, fault.AuthExpired.New("the key %s expired at %s: give it a later expiry-time in authorized_keys, or use another",
			key.Fingerprint(), k.Expires.UTC().Format(time.RFC3339)).With("key", key.Fingerprint())
	}
	return k, nil
}

// Options writes the line's options in one form, whatever order and zone they were written in; empty for none.
func (k *AuthorizedKey) Options() string {
	var list []string
	option := func(name, value string) {
		list = append(list, name+`="`+strings.ReplaceAll(value, `"`, `\"`)+`"`)
	}
	if g := k.Agent; g != nil {
		if g.Name != "" {
			option("agent", g.Name)
		}
		if len(g.Allow) > 0 {
			option("allow", strings.Join(g.Allow, ","))
		}
		if g.Origin != "" {
			option("origin", g.Origin)
		}
		for _, resource := range slices.Sorted(maps.Keys(g.Quotas)) {
			option("quota", resource+"="+strconv.FormatFloat(g.Quotas[resource], 'f', -1, 64))
		}
	}
	if k.Role != "" {
		option("role", k.Role)
	}
	if !k.Expires.IsZero() {
		option("expiry-time", k.Expires.UTC().Format("20060102150405Z"))
	}
	if k.NoTouch {
		list = append(list, "no-touch-required")
	}
	return strings.Join(list, ",")
}
