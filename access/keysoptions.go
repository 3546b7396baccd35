package access

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// parseOptions reads the options of a line into k. An option that is not one of ours refuses the key: sshd's others all
// take something away, and a key must not hold more here than whoever wrote its line believed.
func (k *AuthorizedKey) parseOptions(options string, zone *time.Location) *fault.Fault {
	seen := map[string]bool{}
	for options != "" {
		name, value, rest, err := cutOption(options)
		if err != nil {
			return err
		}
		if seen[name] && name != "quota" {
			return fault.AuthMalformed.New("the option %s stands there twice", name)
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
		k.agent() // a key that is lent for a time is nobody's who may do everything
	}
	return nil
}

// cutOption cuts the first option off a list. value is nil for one that has none.
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

// set takes one option in.
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
		return fault.AuthKeyType.New("the option %s is not one that pwos implements, so its key is refused: there are allow, quota, origin, agent, role, expiry-time, no-touch-required",
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

// agent makes the key an agent's. Whoever has one option of an agent has no more than its options say.
func (k *AuthorizedKey) agent() *AgentGrant {
	if k.Agent == nil {
		k.Agent = &AgentGrant{Quotas: map[string]float64{}}
	}
	return k.Agent
}

var (
	// patternForm is a code, a whole domain, or the name of something else than a syscall of the kernel's. A type is schema's to know.
	patternForm = regexp.MustCompile(`^(SYS_[A-Z_]+|[A-Z][a-zA-Z0-9]*\.\*|\*|(Call|Tool|Upstream):[^ \t,]+)$`)
	amountForm  = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,15})?$`)
)

func (g *AgentGrant) setAllow(value string) string {
	for pattern := range strings.SplitSeq(value, ",") {
		if !patternForm.MatchString(pattern) && !schema.ValidType(pattern) {
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
	case !amountForm.MatchString(text) || err != nil || math.IsInf(amount, 0):
		return "of " + printable(resource, 64) + " has to be a plain number, such as 1000 or 0.5"
	case twice:
		return "of " + printable(resource, 64) + " stands there twice"
	}
	g.Quotas[resource] = amount
	return ""
}

func (g *AgentGrant) setOrigin(value string) string {
	u, err := url.Parse(value)
	if err != nil || !u.IsAbs() || u.Host == "" && u.Path == "" || strings.ContainsAny(value, " \t") || len(value) > 1024 {
		return "has to be a URL, such as https://my-os.local/"
	}
	g.Origin = value
	return ""
}

func (g *AgentGrant) setName(value string) string {
	const most = 256 // characters, as for child_agent_id
	if utf8.RuneCountInString(value) > most || strings.TrimSpace(value) != value || printable(value, len(value)) != value {
		return "has to be a name of at most 256 printable characters"
	}
	g.Name = value
	return ""
}

func (k *AuthorizedKey) setRole(value string) string {
	if value != "viewer" && value != "approver" {
		return "is viewer or approver"
	}
	k.Role = value
	return ""
}

// setExpiry reads a time as sshd does: YYYYMMDD[HHMM[SS]], of the local zone unless a Z follows.
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
	return `has to be a time, written YYYYMMDD[HHMM[SS]][Z]`
}
