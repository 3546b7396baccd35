package access

import (
	"cmp"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// maxKeysLine bounds a line of authorized_keys in bytes.
	maxKeysLine = 16 << 10
	// maxKeysFile bounds the whole file in bytes.
	maxKeysFile = 1 << 20
)

// AuthorizedKey is a line of authorized_keys that admits its key.
type AuthorizedKey struct {
	Key     PublicKey
	Comment string
	Line    int       // from 1
	NoTouch bool      // no-touch-required: a security key need not be touched
	Expires time.Time // expiry-time, the last moment of the key; zero: it does not expire
	Role    string    // role: viewer or approver limits an operator's key; empty: no limit
	Kernel  string    // kernel: the name of the kernel that has the key, in a members file; empty elsewhere
	Standby bool      // standby: the key is of another host that may lead that kernel
	Node    string    // node: the name of the node of the bus that has the key, in a members file; empty elsewhere
	// Agent is what the key's holder may do; nil for an operator, who may do everything that Role
	// allows. Only a line whose options are at most no-touch-required and role is the operator's;
	// with role it may also have expiry-time.
	Agent *AgentGrant
}

// AgentGrant is what the options of an agent's key grant (CAP 2). Nothing else is granted.
type AgentGrant struct {
	Name   string             // agent: its agent_id; empty if the line has none
	Origin string             // origin: an absolute URL; empty if the line has none
	Allow  []string           // allow: types, codes, "Domain.*" or "*", sorted; well formed, but maybe not of an existing syscall
	Quotas map[string]float64 // quota: most units held at once, by resource
}

// RefusedLine is a line of authorized_keys that admits no key.
type RefusedLine struct {
	Line        int    // from 1
	Fingerprint string // of its key, if the key could be read
	Reason      string // fit for a log: printable, and quotes only names of options
}

// AuthorizedKeys is the content of a file of authorized keys. It is immutable.
//
// It fails closed. A line with an unknown option, or in a doubtful form, also refuses its key on
// every other line, since it is unclear which line was meant. Two lines that contradict each other
// about a key refuse it too.
type AuthorizedKeys struct {
	keys    []*AuthorizedKey // by line
	nodes   []*AuthorizedKey // of the bus, by line
	byKey   map[PublicKey]*AuthorizedKey
	refused []RefusedLine
	banned  map[PublicKey]bool
}

// ParseAuthorizedKeys reads the text of a file of authorized keys (sshd(8)). Times without a Z are of the given zone.
func ParseAuthorizedKeys(text []byte, zone *time.Location) *AuthorizedKeys {
	return parseKeys(text, zone, parseKeysLine)
}

// parseKeys reads a file of keys, a line at a time.
func parseKeys(text []byte, zone *time.Location, parse lineParser) *AuthorizedKeys {
	a := &AuthorizedKeys{byKey: map[PublicKey]*AuthorizedKey{}, banned: map[PublicKey]bool{}}
	number := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		number++
		if line = strings.Trim(strings.TrimSuffix(line, "\r"), " \t"); line == "" || line[0] == '#' {
			continue
		}
		k, err := parse(line, zone)
		a.add(number, line, k, err)
	}
	for _, k := range a.keys {
		if a.banned[k.Key] && !slices.ContainsFunc(a.refused, func(r RefusedLine) bool { return r.Line == k.Line }) {
			a.refuse(k.Line, k.Key, "another line refuses this key or has other options: keep one line for it")
		}
	}
	a.keys = slices.DeleteFunc(a.keys, func(k *AuthorizedKey) bool { return a.banned[k.Key] })
	slices.SortStableFunc(a.refused, func(x, y RefusedLine) int { return cmp.Compare(x.Line, y.Line) })
	return a
}

// add adds one line: k, or a refusal if err is not nil.
func (a *AuthorizedKeys) add(number int, line string, k *AuthorizedKey, err *fault.Fault) {
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
		a.refuse(number, k.Key, "line "+strconv.Itoa(first.Line)+" has the same key and options: remove one of them")
	default:
		a.banned[k.Key] = true
		a.refuse(number, k.Key, "line "+strconv.Itoa(first.Line)+" gives this key other options: keep one of them")
	}
}

func (a *AuthorizedKeys) refuse(line int, key PublicKey, reason string) {
	a.refused = append(a.refused, RefusedLine{Line: line, Fingerprint: key.Fingerprint(), Reason: reason})
}

// Keys returns the lines that admit a key, in the order of the file. They must not be changed.
func (a *AuthorizedKeys) Keys() []*AuthorizedKey { return a.keys }

// Refused returns the lines that admit no key, in the order of the file.
func (a *AuthorizedKeys) Refused() []RefusedLine { return a.refused }

// Lookup returns the line of a key. The error is a *fault.Fault that lists the accepted keys.
func (a *AuthorizedKeys) Lookup(key PublicKey, now time.Time) (*AuthorizedKey, error) {
	k := a.byKey[key]
	switch {
	case a.banned[key]:
		return nil, fault.AuthKeyType.New("the line of the key %s in authorized_keys is refused: see \"pwos auth keys\" or the daemon's log",
			key.Fingerprint()).With("key", key.Fingerprint())
	case k == nil:
		return nil, fault.AuthNoSuchKey.New("the key %s (%s) is not in the daemon's authorized_keys: add it there, or use one of those (%d; types that are accepted: %s)",
			key.Fingerprint(), key.typ, len(a.keys), AcceptedTypes).With("key", key.Fingerprint())
	case !k.Expires.IsZero() && now.After(k.Expires):
		return nil, fault.AuthExpired.New("the key %s expired at %s: give it a later expiry-time in authorized_keys, or use another",
			key.Fingerprint(), k.Expires.UTC().Format(time.RFC3339)).With("key", key.Fingerprint())
	}
	return k, nil
}

// Options returns the line's options in canonical form; empty if it has none.
func (k *AuthorizedKey) Options() string {
	var list []string
	option := func(name, value string) {
		list = append(list, name+`="`+strings.ReplaceAll(value, `"`, `\"`)+`"`)
	}
	if k.Kernel != "" {
		option("kernel", k.Kernel)
	}
	if k.Standby {
		list = append(list, "standby")
	}
	if k.Node != "" {
		option("node", k.Node)
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

// A lineParser parses a line that is neither empty nor a comment, without the blanks around it.
type lineParser func(line string, zone *time.Location) (*AuthorizedKey, *fault.Fault)

// parseKeysLine is the lineParser of authorized_keys.
func parseKeysLine(line string, zone *time.Location) (*AuthorizedKey, *fault.Fault) {
	k, options, err := splitKeysLine(line)
	if err != nil {
		return nil, err
	}
	return k, k.parseOptions(options, zone)
}

// splitKeysLine parses the key of a line, and cuts the options off.
func splitKeysLine(line string) (*AuthorizedKey, string, *fault.Fault) {
	if len(line) > maxKeysLine {
		return nil, "", fault.AuthMalformed.New("the line is over %d bytes long", maxKeysLine)
	}
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return nil, "", fault.AuthMalformed.New("the line has control characters: type it again")
	}
	options, rest := "", line
	if !beginsWithType(line) {
		var closed bool
		if options, rest, closed = cutOptions(line); !closed {
			return nil, "", fault.AuthMalformed.New("a quotation mark is not closed")
		}
	}
	key, comment, err := parseKeyLine(rest)
	if err != nil {
		return nil, "", err
	}
	return &AuthorizedKey{Key: key, Comment: comment}, options, nil
}

// beginsWithType reports whether the first word is a type of keys, which no option begins like.
func beginsWithType(line string) bool {
	word, _, _ := cutAny(line, " \t")
	for _, prefix := range []string{"ssh-", "ecdsa-", "sk-", "rsa-", "webauthn-"} {
		if strings.HasPrefix(word, prefix) {
			return !strings.ContainsAny(word, `",=`)
		}
	}
	return false
}

// cutOptions cuts the options off a line: up to the first blank outside of quotation marks. As in
// sshd, \" within them is a quotation mark, and every other backslash is literal.
func cutOptions(line string) (options, rest string, closed bool) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '"':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
			return line[:i], strings.TrimLeft(line[i:], " \t"), true
		}
	}
	return line, "", !quoted
}

// keysIn returns the keys in any word of a malformed line: the line may have been about each of
// them.
func keysIn(line string) []PublicKey {
	const most = 8 // a well-formed line has one
	var keys []PublicKey
	for word := range strings.FieldsSeq(line) {
		typ, ok := typeOfBase64(word)
		if !ok {
			continue
		}
		if key, _, err := parseKeyLine(typ + " " + word); err == nil && len(keys) < most {
			keys = append(keys, key)
		}
	}
	return keys
}

// typeOfBase64 guesses the type of a key from the beginning of its base64.
func typeOfBase64(word string) (string, bool) {
	for prefix, typ := range map[string]string{
		"AAAAC3NzaC1lZDI1NTE5":                 "ssh-ed25519",
		"AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2gu": "sk-ssh-ed25519@openssh.com",
		"AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY":      "ecdsa-sha2-nistp256",
		"AAAAE2VjZHNhLXNoYTItbmlzdHAzODQ":      "ecdsa-sha2-nistp384",
		"AAAAB3NzaC1yc2":                       "ssh-rsa",
	} {
		if strings.HasPrefix(word, prefix) {
			return typ, true
		}
	}
	return "", false
}

// parseOptions parses the options of a line into k. An unknown option refuses the key: sshd's
// others all restrict a key, which must not have more rights here than the author of its line
// intended.
func (k *AuthorizedKey) parseOptions(options string, zone *time.Location) *fault.Fault {
	seen := map[string]bool{}
	for options != "" {
		name, value, rest, err := cutOption(options)
		if err != nil {
			return err
		}
		if seen[name] && name != "quota" {
			return fault.AuthMalformed.New("the option %s is given twice", name)
		}
		seen[name] = true
		if err := k.set(name, value, zone); err != nil {
			return err
		}
		options = rest
	}
	switch {
	case k.Role != "" && k.Agent != nil:
		return fault.AuthMalformed.New("the option role is for the operator's keys: it does not go with allow, quota, origin and agent")
	case k.Role == "" && !k.Expires.IsZero():
		k.agent() // a key with an expiry time is never an unrestricted operator's
	}
	return nil
}

// cutOption cuts the first option off a list. value is nil for an option without one.
func cutOption(list string) (name string, value *string, rest string, err *fault.Fault) {
	end := strings.IndexAny(list, `=,"`)
	if end < 0 {
		end = len(list)
	}
	name, list = list[:end], list[end:]
	if name == "" {
		return "", nil, "", fault.AuthMalformed.New("the options are not written as name or name=\"value\", with commas and no blanks between")
	}
	if quoted, ok := strings.CutPrefix(list, `="`); ok {
		var b strings.Builder
		i := 0
		for ; i < len(quoted) && quoted[i] != '"'; i++ {
			if quoted[i] == '\\' && i+1 < len(quoted) && quoted[i+1] == '"' {
				i++
			}
			b.WriteByte(quoted[i])
		}
		if i == len(quoted) {
			return "", nil, "", fault.AuthMalformed.New("the value of %s is not closed with a quotation mark", printable(name, 64))
		}
		text := b.String()
		value, list = &text, quoted[i+1:]
	}
	if list == "" {
		return name, value, "", nil
	}
	rest, ok := strings.CutPrefix(list, ",")
	if !ok || rest == "" {
		return "", nil, "", fault.AuthMalformed.New("the option %s is not followed by a comma or a blank, or its value is not in quotation marks", printable(name, 64))
	}
	return name, value, rest, nil
}

// set applies one option.
func (k *AuthorizedKey) set(name string, value *string, zone *time.Location) *fault.Fault {
	if name == "no-touch-required" {
		if value != nil {
			return fault.AuthMalformed.New("the option no-touch-required takes no value")
		}
		k.NoTouch = true
		return nil
	}
	set, ok := map[string]func(string) string{
		"allow":       func(v string) string { return k.agent().setAllow(v) },
		"quota":       func(v string) string { return k.agent().setQuota(v) },
		"origin":      func(v string) string { return k.agent().setOrigin(v) },
		"agent":       func(v string) string { return k.agent().setName(v) },
		"role":        k.setRole,
		"expiry-time": func(v string) string { return k.setExpiry(v, zone) },
	}[name]
	if !ok {
		return fault.AuthKeyType.New("the option %s is not one that pwos implements, so its key is refused: the options are allow, quota, origin, agent, role, expiry-time, no-touch-required",
			printable(name, 64))
	}
	if value == nil || *value == "" || !utf8.ValidString(*value) {
		return fault.AuthMalformed.New("the option %s needs a value, in quotation marks", name)
	}
	if problem := set(*value); problem != "" {
		return fault.AuthMalformed.New("the option %s %s", name, problem)
	}
	return nil
}

// agent makes the key an agent's. A key with one agent option may do only what its options grant.
func (k *AuthorizedKey) agent() *AgentGrant {
	if k.Agent == nil {
		k.Agent = &AgentGrant{Quotas: map[string]float64{}}
	}
	return k.Agent
}

var (
	// patternForm is a code, a whole domain, or a name outside the kernel's syscalls. Types are
	// checked against schema.
	patternForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(SYS_[A-Z_]+|[A-Z][a-zA-Z0-9]*\.\*|\*|(Call|Tool|Upstream):[^ \t,]+)$`)
	})
	amountForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,15})?$`)
	})
)

func (g *AgentGrant) setAllow(value string) string {
	for pattern := range strings.SplitSeq(value, ",") {
		if !patternForm().MatchString(pattern) && !schema.ValidType(pattern) {
			return `names "` + printable(pattern, 64) + `": name types such as Memory.Set, codes such as SYS_ALLOC, Domain.*, * or paths such as Call:mcp/fs/*, with commas and no blanks between`
		}
		g.Allow = append(g.Allow, pattern)
	}
	slices.Sort(g.Allow)
	g.Allow = slices.Compact(g.Allow)
	return ""
}

func (g *AgentGrant) setQuota(value string) string {
	resource, text, _ := strings.Cut(value, "=")
	amount, err := strconv.ParseFloat(text, 64)
	_, twice := g.Quotas[resource]
	switch {
	case resource == "" || strings.ContainsAny(resource, " \t,") || len(resource) > 256:
		return `is written quota="resource=amount"`
	case !amountForm().MatchString(text) || err != nil || math.IsInf(amount, 0):
		return "of " + printable(resource, 64) + " must be a plain number, such as 1000 or 0.5"
	case twice:
		return "of " + printable(resource, 64) + " is given twice"
	}
	g.Quotas[resource] = amount
	return ""
}

func (g *AgentGrant) setOrigin(value string) string {
	u, err := url.Parse(value)
	if err != nil || !u.IsAbs() || u.Host == "" && u.Path == "" || strings.ContainsAny(value, " \t") || len(value) > 1024 {
		return "must be a URL, such as https://my-os.local/"
	}
	g.Origin = value
	return ""
}

func (g *AgentGrant) setName(value string) string {
	const most = 256 // characters, as for child_agent_id
	if utf8.RuneCountInString(value) > most || strings.TrimSpace(value) != value || printable(value, len(value)) != value {
		return "must be a name of at most 256 printable characters"
	}
	g.Name = value
	return ""
}

func (k *AuthorizedKey) setRole(value string) string {
	if value != "viewer" && value != "approver" {
		return "must be viewer or approver"
	}
	k.Role = value
	return ""
}

// setExpiry parses a time as sshd does: YYYYMMDD[HHMM[SS]], in the local zone unless a Z follows.
func (k *AuthorizedKey) setExpiry(value string, zone *time.Location) string {
	digits, utc := strings.CutSuffix(value, "Z")
	if utc {
		zone = time.UTC
	}
	const form = "20060102150405"
	n := len(digits)
	if n == 8 || n == 12 || n == 14 {
		if t, err := time.ParseInLocation(form[:n], digits, zone); err == nil && t.Year() >= 1970 {
			k.Expires = t
			return ""
		}
	}
	return `must be a time, written YYYYMMDD[HHMM[SS]][Z]`
}
