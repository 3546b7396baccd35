package config

import "github.com/promptware-os/pwos/access"

// agentFaults reports bounds of agents that cannot be meant.
func (c *Config) agentFaults(refuse func(key, format string, args ...any)) {
	a := &c.Agents
	if a.Connections < 1 {
		refuse("agents.connections", "%d must be at least 1", a.Connections)
	}
	if a.Prologues < 1 || a.Prologues > access.AgentsWaiting {
		refuse("agents.prologues", "%d must be from 1 to %d", a.Prologues, access.AgentsWaiting)
	}
	if a.InFlightBytes < maxLineBytes {
		refuse("agents.in_flight_bytes", "%d must be at least %d, which the longest line may have", a.InFlightBytes, maxLineBytes)
	}
	for key, n := range map[string]int64{
		"agents.journal_bytes_per_second": a.JournalBytesPerSecond,
		"agents.journal_burst_bytes":      a.JournalBurstBytes,
	} {
		if n < 64<<10 {
			refuse(key, "%d must be at least %d", n, 64<<10)
		}
	}
}
