package bus

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
)

// Users returns the section of a NATS configuration with the members as users, and the permissions that pwos-bus gives
// them, for an existing NATS server.
func Users(members *access.AuthorizedKeys) (string, error) {
	var b strings.Builder
	b.WriteString("authorization {\n  users = [\n")
	valid := current(members.Keys())
	for _, member := range valid {
		user, err := cluster.User(member.Key)
		if err != nil {
			return "", err
		}
		p := Permissions(member.Kernel, valid)
		// There the kernels create the streams themselves, and change those of an earlier build.
		for _, stream := range []string{cluster.Stream(member.Kernel), "KV_" + cluster.LeaseBucket(member.Kernel)} {
			p.Publish.Allow = append(p.Publish.Allow, "$JS.API.STREAM.CREATE."+stream, "$JS.API.STREAM.UPDATE."+stream)
		}
		fmt.Fprintf(&b, "    {\n      nkey: %s # %s\n      permissions: {\n", user, member.Kernel)
		fmt.Fprintf(&b, "        publish: {allow: [%s]}\n", quoted(p.Publish.Allow))
		fmt.Fprintf(&b, "        subscribe: {allow: [%s]}\n", quoted(p.Subscribe.Allow))
		b.WriteString("      }\n    }\n")
	}
	b.WriteString("  ]\n}\n")
	return b.String(), nil
}

// current returns the lines that have not expired.
func current(lines []*access.AuthorizedKey) []*access.AuthorizedKey {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(lines), func(m *access.AuthorizedKey) bool { return !m.Expires.IsZero() && now.After(m.Expires) })
}

func quoted(subjects []string) string {
	all := make([]string, len(subjects))
	for i, s := range subjects {
		all[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(all, ", ")
}
