package load

import "time"

// Quantile returns the quantile of the durations by a histogram.
func Quantile(durations []time.Duration, q float64) time.Duration {
	var parts [2]histogram
	for i, d := range durations {
		parts[i%2].add(d)
	}
	parts[0].merge(&parts[1])
	return parts[0].quantile(q)
}
