package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/access"
)

// With Disk, a command is answered when it is on the disk of this kernel, and the bus gets it later. With Quorum, it is
// answered when a majority of the bus has it too.
const (
	Disk   = "disk"
	Quorum = "quorum"
)

// clusterFaults reports faults of the cluster's settings that concern several of them.
func (c *Config) clusterFaults(refuse func(key, format string, args ...any)) {
	k := &c.Cluster
	if k.Name == "" {
		if k.Bus != "" {
			refuse("cluster.name", "is required if there is a bus: the name of this kernel, such as alpha")
		}
		return
	}
	if !access.KernelName(k.Name) {
		refuse("cluster.name", "%q must have at most 32 of a-z, 0-9 and -, and begin with a letter", k.Name)
	}
	if k.Bus == "" {
		refuse("cluster.bus", "is required if there is a name: the address of the bus, such as nats://127.0.0.1:4222")
	}
	for address := range strings.SplitSeq(k.Bus, ",") {
		if u, err := url.Parse(address); k.Bus != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "nats" && u.Scheme != "tls") {
			refuse("cluster.bus", "must be addresses such as nats://host:4222 or tls://host:4222, separated by commas")
			return
		}
	}
	if k.Acknowledge == Quorum && c.Journal.Sync == Interval {
		refuse("cluster.acknowledge", "cannot be quorum if journal.sync is interval: an entry is on this disk before it is on others")
	}
	if k.Standby && k.Acknowledge != Quorum {
		refuse("cluster.standby", "needs cluster.acknowledge = quorum: otherwise calls that were answered may be lost, which only \"pwos cluster takeover\" accepts")
	}
	if c.MembersFile() == "" {
		refuse("cluster.members", "is required without a configuration file, in whose directory it would be")
	}
}

// MembersFile returns the path of the members file, which may not exist; "" if there is no configuration.
func (c *Config) MembersFile() string {
	if c.Cluster.Members != "" || c.File == "" {
		return c.Cluster.Members
	}
	return filepath.Join(filepath.Dir(c.File), "members")
}
