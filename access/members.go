package access

import (
	"crypto"
	"crypto/ed25519"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/schema/fault"
)

// kernelForm is the form of a kernel's name, which is part of subjects of the bus.
var kernelForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
})

// nodeForm is the form of the name of a node of the bus.
var nodeForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
})

// NodeName reports whether name may name a node of the bus.
func NodeName(name string) bool { return nodeForm().MatchString(name) }

// KernelName reports whether name may name a kernel.
func KernelName(name string) bool { return kernelForm().MatchString(name) }

// ParseMembers parses a members file (PROTOCOL 13): the kernels of a cluster, one a line in the
// form of authorized_keys, with an ed25519 key, the host key. The option kernel names the kernel;
// without it the comment does. allow, quota and origin grant what the kernel may do here, and role
// what its operator may; without them it may do nothing. A line with standby has the key of another
// host that may lead the kernel, whose grant is in its own line. A line with node has the key of a
// node of the bus instead: Nodes returns these, and Keys the others.
func ParseMembers(text []byte, zone *time.Location) *AuthorizedKeys {
	named := map[string]bool{}
	a := parseKeys(text, zone, func(line string, zone *time.Location) (*AuthorizedKey, *fault.Fault) {
		k, err := parseMember(line, zone)
		if err != nil || k.Standby {
			return k, err
		}
		what, name := "kernel", k.Kernel
		if k.Node != "" {
			what, name = "node", k.Node
		}
		if named[what+" "+name] {
			return nil, fault.AuthMalformed.New("another line names the %s %s too: keep one of them", what, name)
		}
		named[what+" "+name] = true
		return k, nil
	})
	a.nodes = slices.DeleteFunc(slices.Clone(a.keys), func(k *AuthorizedKey) bool { return k.Node == "" })
	a.keys = slices.DeleteFunc(a.keys, func(k *AuthorizedKey) bool { return k.Node != "" })
	return a
}

// Nodes returns the lines of a members file that admit a node of the bus, in the order of the file. They must not be changed.
func (a *AuthorizedKeys) Nodes() []*AuthorizedKey { return a.nodes }

func parseMember(line string, zone *time.Location) (*AuthorizedKey, *fault.Fault) {
	k, options, err := splitKeysLine(line)
	if err != nil {
		return nil, err
	}
	name, role, options, err := k.memberOptions(options)
	if err != nil {
		return nil, err
	}
	if err := k.parseOptions(options, zone); err != nil {
		return nil, err
	}
	if k.Node != "" {
		return k, k.checkNode(name + role)
	}
	if role != "" {
		if problem := k.setRole(role); problem != "" {
			return nil, fault.AuthMalformed.New("the option role %s", problem)
		}
	}
	if name == "" {
		name = k.Comment
	}
	k.Kernel = name
	g := k.agent()
	switch {
	case k.Standby && (role != "" || g.Origin != "" || len(g.Allow)+len(g.Quotas) > 0):
		return nil, fault.AuthMalformed.New("a line with standby says only which kernel the key may lead: what that may do is in the line of its own")
	case !KernelName(name):
		return nil, fault.AuthMalformed.New("a kernel is named by kernel=\"NAME\", which has at most 32 of a-z, 0-9 and -, and begins with a letter")
	case k.Key.Type() != ssh.KeyAlgoED25519:
		return nil, fault.AuthKeyType.New("the key of a kernel is its host key, which is of type %s", ssh.KeyAlgoED25519)
	case k.Agent.Name != "", k.NoTouch:
		return nil, fault.AuthMalformed.New("agent and no-touch-required are not for kernels")
	}
	return k, nil
}

// checkNode returns what is wrong with the line of a node of the bus. others are the values of options that are for kernels.
func (k *AuthorizedKey) checkNode(others string) *fault.Fault {
	g := k.agent()
	switch {
	case others != "", k.Standby, k.NoTouch, g.Name != "", g.Origin != "", len(g.Allow)+len(g.Quotas) > 0:
		return fault.AuthMalformed.New("a line with node names a node of the bus: beside it only expiry-time may stand")
	case !NodeName(k.Node):
		return fault.AuthMalformed.New("a node is named by node=\"NAME\", which has at most 64 letters, digits, dots, hyphens and underscores, and begins with a letter or digit")
	case k.Key.Type() != ssh.KeyAlgoED25519:
		return fault.AuthKeyType.New("the key of a node is of type %s: \"pwos-bus --print-key\" prints its line", ssh.KeyAlgoED25519)
	}
	return nil
}

// memberOptions cuts the options out of a list that are a member's alone or have another meaning
// for one.
func (k *AuthorizedKey) memberOptions(list string) (name, role, rest string, _ *fault.Fault) {
	for list != "" {
		before := list
		option, value, after, err := cutOption(list)
		if err != nil {
			return "", "", "", err
		}
		list = after
		into := map[string]*string{"kernel": &name, "role": &role, "node": &k.Node}[option]
		switch {
		case option == "standby" && (value != nil || k.Standby):
			return "", "", "", fault.AuthMalformed.New("the option standby takes no value, and is given once")
		case option == "standby":
			k.Standby = true
		case into == nil && rest == "":
			rest = before[:len(before)-len(after)]
		case into == nil:
			rest += before[:len(before)-len(after)]
		case value == nil || *value == "" || *into != "":
			return "", "", "", fault.AuthMalformed.New("the option %s needs one value, in quotation marks", option)
		default:
			*into = *value
		}
	}
	if n := len(rest); n > 0 && rest[n-1] == ',' {
		rest = rest[:n-1]
	}
	return name, role, rest, nil
}

// Ed25519 returns the raw key, or nil if k is of another type.
func (k PublicKey) Ed25519() ed25519.PublicKey {
	if k.typ != ssh.KeyAlgoED25519 {
		return nil
	}
	crypto, ok := k.parsed().(ssh.CryptoPublicKey)
	if !ok {
		return nil
	}
	raw, _ := crypto.CryptoPublicKey().(ed25519.PublicKey)
	return raw
}

// NewPublicKey returns a key of crypto/ed25519, or of another package of crypto that SSH has a form for.
func NewPublicKey(key crypto.PublicKey) (PublicKey, error) {
	k, err := ssh.NewPublicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read public key: %w", err)
	}
	return PublicKey{typ: k.Type(), blob: string(k.Marshal())}, nil
}

// Key returns the public half of the host key.
func (k *HostKey) Key() PublicKey {
	return PublicKey{typ: k.signer.PublicKey().Type(), blob: string(k.signer.PublicKey().Marshal())}
}
