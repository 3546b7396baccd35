package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// limitsOf reads what --limit was given: name=number, each name once.
func limitsOf(given []string) (*schema.Limits, error) {
	if len(given) == 0 {
		return nil, nil
	}
	limits := new(schema.Limits)
	places := map[string]**int64{
		"cpu_seconds":  &limits.CPUSeconds,
		"wall_seconds": &limits.WallSeconds,
		"memory_bytes": &limits.MemoryBytes,
		"open_files":   &limits.OpenFiles,
		"processes":    &limits.Processes,
	}
	for _, text := range given {
		name, amount, found := strings.Cut(text, "=")
		if !found {
			return nil, fmt.Errorf("--limit %q is not of the form name=number", text)
		}
		place, known := places[name]
		switch {
		case !known:
			return nil, fmt.Errorf("--limit %s: there is none of that name; cpu_seconds, wall_seconds, memory_bytes, open_files and processes there are", name)
		case *place != nil:
			return nil, fmt.Errorf("--limit names %s twice", name)
		}
		n, err := countOf(amount)
		if err != nil {
			return nil, fmt.Errorf("--limit %s: %w", name, err)
		}
		*place = &n
	}
	return limits, nil
}

// countOf reads a whole number of at least 1, which may end in K, M or G for powers of 1024.
func countOf(text string) (int64, error) {
	factor := int64(1)
	digits := strings.TrimRight(text, "KMG")
	switch text[len(digits):] {
	case "":
	case "K":
		factor = 1 << 10
	case "M":
		factor = 1 << 20
	case "G":
		factor = 1 << 30
	default:
		return 0, fmt.Errorf("%q is no number such as 10 or 256M", text)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is no number such as 10 or 256M", text)
	}
	return n * factor, nil
}
