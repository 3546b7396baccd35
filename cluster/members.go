package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// Members are the kernels of a members file, read again whenever it has changed.
type Members struct{ source *access.Source }

// NewMembers returns the members of a file. Nothing is read yet.
func NewMembers(file string) *Members {
	return &Members{access.NewMemberSource(file, time.Now)}
}

// Close lets the file go.
func (m *Members) Close() error { return m.source.Close() }

// List returns the members by name, and the lines that count for nothing.
func (m *Members) List() ([]*access.AuthorizedKey, []access.RefusedLine, error) {
	keys, err := m.source.Load()
	if err != nil {
		return nil, nil, fault.ClusterMembers.New("the file of members cannot be used: %v", err)
	}
	list := slices.SortedFunc(slices.Values(keys.Keys()), func(a, b *access.AuthorizedKey) int { return cmp.Compare(a.Kernel, b.Kernel) })
	return list, keys.Refused(), nil
}

// Find returns the member of a name.
func (m *Members) Find(name string) (*access.AuthorizedKey, error) {
	list, _, err := m.List()
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		switch {
		case k.Kernel != name:
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
	text := "it names "
	for i, k := range list {
		if i > 0 {
			text += ", "
		}
		text += k.Kernel
	}
	return text
}

// shown are lines that count for nothing, in words.
func shown(refused []access.RefusedLine) (all []string) {
	for _, r := range refused {
		all = append(all, fmt.Sprintf("line %d: %s", r.Line, r.Reason))
	}
	return all
}
