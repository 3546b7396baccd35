package client

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Keys say what to show a kernel that wants to know who connects (BRIDGE 4.2.5), and how to reach whoever uses this
// program. The zero Keys are the user's own: those of the ssh-agent, then the files that ssh looks for.
type Keys struct {
	// Identity is the path of the one key to use, private or public; empty: PWOS_IDENTITY, and without that any key.
	Identity string
	// Passphrase asks for the passphrase of a key file. Nil: nobody can be asked.
	Passphrase access.Passphrase
	// Known remembers the kernels' host keys; the zero value: KnownKernels().
	Known access.KnownKernels
	// Notice is told, in a sentence, what a person may want to know: that a kernel was trusted that was not known. Nil:
	// nobody looks on.
	Notice func(string)
}

// KnownKernels returns the file in which the clients of this environment remember kernels, beside the configuration. Its
// path is empty where there is no home directory to have one in.
func KnownKernels() access.KnownKernels {
	return access.KnownKernels{Path: besideConfig(unixsock.KnownKernels)}
}

// AuthorizedKeys returns the path of the keys that a kernel of this environment lets in unless its configuration says
// otherwise (PROTOCOL 1), empty where there is no home directory.
func AuthorizedKeys() string { return besideConfig(unixsock.AuthorizedKeys) }

// ConfigFile returns the path of the configuration of a kernel of this environment (PROTOCOL 1), empty where there is no home
// directory.
func ConfigFile() string { return besideConfig(func(config string) string { return config }) }

func besideConfig(place func(string) string) string {
	home, err := os.UserHomeDir()
	if err != nil && os.Getenv("PWOS_CONFIG") == "" && !filepath.IsAbs(os.Getenv("XDG_CONFIG_HOME")) {
		return ""
	}
	path, err := filepath.Abs(place(unixsock.ConfigFile(os.Getenv, home)))
	if err != nil { // there is no working directory any more
		return ""
	}
	return path
}

func (k Keys) known() access.KnownKernels {
	if k.Known.Path == "" {
		return KnownKernels()
	}
	return k.Known
}

// Identities returns where the keys are looked for.
func (k Keys) Identities() (*access.Identities, error) {
	i := &access.Identities{Identity: k.Identity, AgentSocket: os.Getenv("SSH_AUTH_SOCK"), Passphrase: k.Passphrase}
	if i.Identity == "" {
		i.Identity = os.Getenv("PWOS_IDENTITY")
	}
	if i.Identity != "" {
		path, err := filepath.Abs(i.Identity)
		if err != nil {
			return nil, fmt.Errorf("find identity: %w", err)
		}
		i.Identity = path
		return i, nil
	}
	if home, err := os.UserHomeDir(); err == nil {
		i.Files = access.DefaultKeyFiles(home)
	}
	return i, nil
}
