package config

import (
	"path/filepath"
	"time"
)

// The most that a tool may be given: a record of what it answers has to fit an entry of the journal, and a module's memory
// is the kernel's.
const (
	maxToolOutput = 4 << 20
	maxToolMemory = 4 << 30

	leastCodeMemory = 4 << 20 // with less no runtime is made
	maxCodeTime     = time.Minute
)

func (c *Config) toolFaults(refuse func(key, format string, args ...any)) {
	if path := c.Ingest.TrustedKeys; path != "" && !filepath.IsAbs(path) {
		refuse("ingest.trusted_keys", "%q must be an absolute path", path)
	}
	if c.Tools.Time <= 0 {
		refuse("tools.time", "must be more than nothing")
	}
	if n := c.Tools.MemoryBytes; n < 1<<16 || n > maxToolMemory {
		refuse("tools.memory_bytes", "%d must be from %d to %d", n, 1<<16, int64(maxToolMemory))
	}
	if n := c.Tools.OutputBytes; n < 1 || n > maxToolOutput {
		refuse("tools.output_bytes", "%d must be from 1 to %d", n, maxToolOutput)
	}
	if n := c.Tools.AtOnce; n < 0 || n > 1024 {
		refuse("tools.at_once", "%d must be from 0 to 1024", n)
	}
	if t := time.Duration(c.Code.Time); t <= 0 || t > maxCodeTime {
		refuse("code.time", "must be more than nothing, and at most %v", maxCodeTime)
	}
	if n := c.Code.MemoryBytes; n < leastCodeMemory || n > maxToolMemory {
		refuse("code.memory_bytes", "%d must be from %d to %d", n, leastCodeMemory, int64(maxToolMemory))
	}
	if n := c.Code.OutputBytes; n < 1 || n > maxToolOutput {
		refuse("code.output_bytes", "%d must be from 1 to %d", n, maxToolOutput)
	}
	if n := c.Code.AtOnce; n < 0 || n > 64 {
		refuse("code.at_once", "%d must be from 0 to 64", n)
	}
}

// TrustedKeys is the file of keys whose signatures of resources count, whether it is there or not; "" where none is meant.
func (c *Config) TrustedKeys() string {
	if c.Ingest.TrustedKeys != "" || c.File == "" {
		return c.Ingest.TrustedKeys
	}
	return filepath.Join(filepath.Dir(c.File), "trusted_keys")
}
