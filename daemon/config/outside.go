package config

import (
	"net/netip"
	"path/filepath"
	"time"
)

// HTTP is what Http.Fetch may reach, and how much it takes.
type HTTP struct {
	Allow        []string `toml:"allow"`          // prefixes of addresses that are refused otherwise, such as 10.1.0.0/16
	AllowHosts   []string `toml:"allow_hosts"`    // names whose addresses may be loopback or private ones
	CAFile       string   `toml:"ca_file"`        // PEM: authorities beside the system's; "": none
	MaxBodyBytes int64    `toml:"max_body_bytes"` // of an answer, unpacked
}

// Blobs bounds the blob directory.
type Blobs struct {
	TTL       Duration `toml:"ttl"`        // how long one is kept that nobody uses
	FileBytes int64    `toml:"file_bytes"` // of one
	DirBytes  int64    `toml:"dir_bytes"`  // of all
	DirFiles  int      `toml:"dir_files"`
}

// outsideFaults refuses what cannot be meant in what lies outside the kernel.
func (c *Config) outsideFaults(refuse func(key, format string, args ...any)) {
	for _, prefix := range c.HTTP.Allow {
		if _, err := netip.ParsePrefix(prefix); err != nil {
			refuse("http.allow", "%q must be a prefix of addresses such as 10.1.0.0/16", prefix)
		}
	}
	if path := c.HTTP.CAFile; path != "" && !filepath.IsAbs(path) {
		refuse("http.ca_file", "%q must be an absolute path", path)
	}
	if c.HTTP.MaxBodyBytes < 1 {
		refuse("http.max_body_bytes", "%d must be at least 1", c.HTTP.MaxBodyBytes)
	}
	if c.Blobs.TTL < Duration(time.Second) {
		refuse("blobs.ttl", "%v must be at least 1s", time.Duration(c.Blobs.TTL))
	}
	for key, n := range map[string]int64{"file_bytes": c.Blobs.FileBytes, "dir_bytes": c.Blobs.DirBytes, "dir_files": int64(c.Blobs.DirFiles)} {
		if n < 1 {
			refuse("blobs."+key, "%d must be at least 1", n)
		}
	}
}
