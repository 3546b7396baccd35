package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// Requester is a kernel that makes a request: its line of the members file, and the key that signed the request, which is
// not the key of the line if a standby leads the kernel.
type Requester struct {
	*access.AuthorizedKey
	Signer access.PublicKey
}

// Members are the kernels of a members file, read again whenever it has changed.
type Members struct{ source *access.Source }

// NewMembers returns the members of a file. Nothing is read yet.
func NewMembers(file string) *Members {
	return &Members{access.NewMemberSource(file, time.Now)}
}

// Close closes the file.
func (m *Members) Close() error { return m.source.Close() }

// List returns the members by name, and the invalid lines.
func (m *Members) List() ([]*access.AuthorizedKey, []access.RefusedLine, error) {
	keys, err := m.source.Load()
	if err != nil {
		return nil, nil, fault.ClusterMembers.New("the file of members cannot be used: %v", err)
	}
	list := slices.SortedFunc(slices.Values(keys.Keys()), func(a, b *access.AuthorizedKey) int { return cmp.Compare(a.Kernel, b.Kernel) })
	return list, keys.Refused(), nil
}

// Keys returns the keys of the hosts that may lead a kernel: that of its line, and those of its standbys.
func (m *Members) Keys(name string) (keys []access.PublicKey, err error) {
	list, _, err := m.List()
	for _, k := range list {
		if k.Kernel == name && (k.Expires.IsZero() || time.Now().Before(k.Expires)) {
			keys = append(keys, k.Key)
		}
	}
	return keys, err
}

// signer returns the key that signed a message of a member: the key of its line, or of a standby. ok is false if none of
// them did.
func (m *Members) signer(member *access.AuthorizedKey, purpose string, about []byte, msg *nats.Msg) (key access.PublicKey, ok bool) {
	if verified(member.Key, purpose, about, msg) {
		return member.Key, true
	}
	keys, err := m.Keys(member.Kernel)
	if err != nil {
		return key, false
	}
	i := slices.IndexFunc(keys, func(key access.PublicKey) bool { return verified(key, purpose, about, msg) })
	if i < 0 {
		return key, false
	}
	return keys[i], true
}

// Find returns the member with a name.
func (m *Members) Find(name string) (*access.AuthorizedKey, error) {
	list, _, err := m.List()
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		switch {
		case k.Kernel != name || k.Standby:
		case !k.Expires.IsZero() && time.Now().After(k.Expires):
			return nil, fault.ClusterNoKernel.New("the line of the kernel %s in the members file expired at %s", name, k.Expires.UTC().Format(time.RFC3339)).With("kernel", name)
		default:
			return k, nil
		}
	}
	return nil, fault.ClusterNoKernel.New("no line of the members file names a kernel %q: %s", name, names(list)).With("kernel", name)
}

func names(list []*access.AuthorizedKey) string {
	if len(list) == 0 {
		return "it names none"
	}
	known := make([]string, len(list))
	for i, k := range list {
		known[i] = k.Kernel
	}
	return "it names " + strings.Join(slices.Compact(known), ", ")
}

// shown describes invalid lines.
func shown(refused []access.RefusedLine) (all []string) {
	for _, r := range refused {
		all = append(all, fmt.Sprintf("line %d: %s", r.Line, r.Reason))
	}
	return all
}
