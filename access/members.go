package access

import (
	"crypto/ed25519"
	"regexp"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/schema/fault"
)

// kernelForm is the form of a kernel's name, which is part of subjects of the bus.
var kernelForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
})

// KernelName reports whether name may name a kernel.
func KernelName(name string) bool { return kernelForm().MatchString(name) }

// ParseMembers parses a members file (PROTOCOL 13): the kernels of a cluster, one a line in the
// form of authorized_keys, with an ed25519 key, the host key. The option kernel names the kernel;
// without it the comment does. allow, quota and origin grant what the kernel may do here, and role
// what its operator may; without them it may do nothing. A line with standby has the key of another
// host that may lead the kernel, whose grant is in its own line.
func ParseMembers(text []byte, zone *time.Location) *AuthorizedKeys {
	named := map[string]bool{}
	return parseKeys(text, zone, func(line string, zone *time.Location) (*AuthorizedKey, *fault.Fault) {
		k, err := parseMember(line, zone)
		if err != nil || k.Standby {
			return k, err
		}
		if named[k.Kernel] {
			return nil, fault.AuthMalformed.New("another line names the kernel %s too: keep one of them", k.Kernel)
		}
		named[k.Kernel] = true
		return k, nil
	})
}

func parseMember(line string, zone *time.Location) (*AuthorizedKey, *fault.Fault) {
	k, options, err := splitKeysLine(line)
	if err != nil {
		return nil, err
	}
	name, role, options, err := k.kernelOptions(options)
	if err != nil {
		return nil, err
	}
	if err := k.parseOptions(options, zone); err != nil {
		return nil, err
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

// kernelOptions cuts the options out of a list that are a member's alone or have another meaning
// for one.
func (k *AuthorizedKey) kernelOptions(list string) (name, role, rest string, _ *fault.Fault) {
	for list != "" {
		before := list
		option, value, after, err := cutOption(list)
		if err != nil {
			return "", "", "", err
		}
		list = after
		into := map[string]*string{"kernel": &name, "role": &role}[option]
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

// Key returns the public half of the host key.
func (k *HostKey) Key() PublicKey {
	return PublicKey{typ: k.signer.PublicKey().Type(), blob: string(k.signer.PublicKey().Marshal())}
}
