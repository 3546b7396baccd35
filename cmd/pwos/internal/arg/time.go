package arg

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// timeForms says in errors how times are written.
const timeForms = "7d or 2h (that long ago), yesterday, 2026-11-21, 08:00, 2026-11-21T08:00:00Z or @1795895684"

var errNegative = errors.New("must not be negative")

// ParseSpan parses a duration as Go writes it, such as 500ms or 1h30m, which may begin with days: 7d or 1d12h.
func ParseSpan(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	if strings.HasPrefix(text, "-") {
		return 0, errNegative
	}
	days, rest, inDays := strings.Cut(text, "d")
	if !inDays {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > uint64(math.MaxInt64/day)-1 || strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	var more time.Duration
	if rest != "" {
		if more, err = time.ParseDuration(rest); err != nil || more >= day {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
	}
	return time.Duration(n)*day + more, nil
}

// ParseTime parses a time. Without a zone it is in now's. Of a time without a date, the latest that is not after now is meant.
func ParseTime(text string, now time.Time) (time.Time, error) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "now":
		return now, nil
	case "today":
		return today, nil
	case "yesterday":
		return today.AddDate(0, 0, -1), nil
	}
	if seconds, found := strings.CutPrefix(text, "@"); found {
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/1000 {
			return time.Time{}, notTime(text, "@ is followed by seconds since 1970")
		}
		return time.Unix(n, 0), nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, nil
		}
	}
	for _, form := range []string{time.TimeOnly, "15:04"} {
		if at, err := time.Parse(form, text); err == nil {
			on := time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location())
			if on.After(now) {
				on = on.AddDate(0, 0, -1)
			}
			return on, nil
		}
	}
	ago, err := ParseSpan(text)
	switch {
	case errors.Is(err, errNegative):
		return time.Time{}, notTime(text, "a duration counts back, and has no sign")
	case err == nil && !number(text):
		return now.Add(-ago), nil
	case number(text):
		return time.Time{}, notTime(text, "seconds since 1970 are written @"+text)
	case isStep(text):
		return time.Time{}, fmt.Errorf("%q is a step, not a time: a time is %s", text, timeForms)
	}
	return time.Time{}, notTime(text, "times are "+timeForms)
}

func notTime(text, why string) error { return fmt.Errorf("%q is not a time: %s", text, why) }

// Millis returns at in milliseconds since 1970, and at least 0, as the kernel takes it.
func Millis(at time.Time) int64 { return max(0, at.UnixMilli()) }

// Point is a place in the record: an entry, or a time.
type Point struct {
	Seq  *int64
	Time *int64 // in milliseconds since 1970
}

// ParsePoint parses a place in the record. A number, or one after #, is an entry, which is least or greater.
func ParsePoint(text string, least int64, now time.Time) (Point, error) {
	if number(text) || strings.HasPrefix(text, "#") {
		seq, err := ParseEntry(text, least)
		if err != nil {
			return Point{}, err
		}
		return Point{Seq: &seq}, nil
	}
	at, err := ParseTime(text, now)
	if err != nil {
		return Point{}, fmt.Errorf("%w; an entry is a number, such as 12 or #12", err)
	}
	ms := Millis(at)
	return Point{Time: &ms}, nil
}
