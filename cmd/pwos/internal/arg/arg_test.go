package arg_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
)

// now is a Saturday, two hours east of Greenwich.
var now = time.Date(2026, 11, 21, 9, 30, 0, 0, time.FixedZone("", 2*60*60))

// TestSpellings says for each kind of place of a verb what each spelling means there. A text after "!" is a part of the error.
func TestSpellings(t *testing.T) {
	t.Parallel()
	agent := func(who arg.Who) func(string) (string, error) {
		return func(text string) (string, error) {
			a, err := arg.ParseAgent(text, who)
			if a.Name != "" {
				return "name " + a.Name + at(a.Kernel), err
			}
			return fmt.Sprint("pid ", a.PID) + at(a.Kernel), err
		}
	}
	places := []struct {
		name  string
		parse func(string) (string, error)
	}{
		{"process", agent(arg.Who{})},
		{"caller", agent(arg.Who{Operator: true})},
		{"mailbox", agent(arg.Who{Mailbox: true})},
		{"abroad", agent(arg.Who{Operator: true, Abroad: true})},
		{"question", arg.ParseQuestion},
		{"entry", func(text string) (string, error) {
			seq, err := arg.ParseEntry(text, 1)
			return fmt.Sprint("entry ", seq), err
		}},
		{"time", func(text string) (string, error) {
			at, err := arg.ParseTime(text, now)
			return at.In(now.Location()).Format(time.DateTime), err
		}},
		{"point", func(text string) (string, error) {
			p, err := arg.ParsePoint(text, 0, now)
			switch {
			case p.Seq != nil:
				return fmt.Sprint("entry ", *p.Seq), err
			case p.Time != nil:
				return time.UnixMilli(*p.Time).In(now.Location()).Format(time.DateTime), err
			}
			return "", err
		}},
		{"subject", func(text string) (string, error) {
			s, err := arg.ParseSubject(text)
			return fmt.Sprintf("%d|%s|%s", s.Seq, s.Key, s.File), err
		}},
	}
	const noAgent, entry, step, noTime, noEntry, noQuestion = "!is not an agent", "!is an entry of the record, not an agent", "!is a step", "!is not a time", "!is not the number of an entry", "!is not a question"
	for text, want := range map[string][]string{ // in the order of places
		"12":                   {"pid 12", "pid 12", "pid 12", "pid 12", "q-12", "entry 12", "!@12", "entry 12", "12||"},
		"0":                    {"!PIDs are numbers from 1", "pid 0", "!PIDs are numbers from 1", "pid 0", noQuestion, noEntry, "!@0", "entry 0", noEntry},
		"-1":                   {"!is not a PID", "!is not a PID", "!is not a PID", "!is not a PID", noQuestion, noEntry, "!has no sign", noEntry, noEntry},
		"99999999999999999999": {"!is not a PID", "!is not a PID", "!is not a PID", "!is not a PID", noQuestion, noEntry, noTime, noEntry, noEntry},
		"#12":                  {entry, entry, entry, entry, noQuestion, "entry 12", noTime, "entry 12", "12||"},
		"#":                    {entry, entry, entry, entry, noQuestion, noEntry, noTime, noEntry, noEntry},
		"#-1":                  {entry, entry, entry, entry, noQuestion, noEntry, noTime, noEntry, noEntry},
		"claude":               {"name claude", "name claude", "name claude", "name claude", noQuestion, noEntry, noTime, noTime, "0|claude|claude"},
		"planner/writer":       {"name planner/writer", "name planner/writer", "name planner/writer", "name planner/writer", noQuestion, noEntry, noTime, noTime, "0|planner/writer|planner/writer"},
		"a//b":                 {noAgent, noAgent, noAgent, noAgent, noQuestion, noEntry, noTime, noTime, "0|a//b|a//b"},
		"":                     {noAgent, noAgent, noAgent, noAgent, noQuestion, noEntry, noTime, noTime, "!names nothing"},
		"operator":             {"name operator", "pid 0", "pid 0", "pid 0", noQuestion, noEntry, noTime, noTime, "0|operator|operator"},
		"12@beta":              {"!of another kernel", "!of another kernel", "!of another kernel", "pid 12@beta", noQuestion, noEntry, noTime, noTime, "0|12@beta|12@beta"},
		"claude@beta":          {"!of another kernel", "!of another kernel", "!of another kernel", "name claude@beta", noQuestion, noEntry, noTime, noTime, "0|claude@beta|claude@beta"},
		"operator@beta":        {"!of another kernel", "!of another kernel", "!of another kernel", "pid 0@beta", noQuestion, noEntry, noTime, noTime, "0|operator@beta|operator@beta"},
		"@beta":                {"!does not name a kernel", "!does not name a kernel", "!does not name a kernel", "!does not name a kernel", noQuestion, noEntry, "!seconds since 1970", "!seconds since 1970", "0|@beta|@beta"},
		"12@Not A Kernel":      {"!does not name a kernel", "!does not name a kernel", "!does not name a kernel", "!does not name a kernel", noQuestion, noEntry, noTime, noTime, "0|12@Not A Kernel|12@Not A Kernel"},
		"claude:12":            {step, step, step, step, noQuestion, "!is a step, not an entry", "!is a step, not a time", "!is a step, not a time", "0|claude:12|claude:12"},
		"key:SHA256:AbC12":     {"name key:SHA256:AbC12", "name key:SHA256:AbC12", "name key:SHA256:AbC12", "name key:SHA256:AbC12", noQuestion, noEntry, noTime, noTime, "0|SHA256:AbC12|"},
		"key:/notes/1":         {"name key:/notes/1", "name key:/notes/1", "name key:/notes/1", "name key:/notes/1", noQuestion, noEntry, noTime, noTime, "0|/notes/1|"},
		"key:7":                {step, step, step, step, noQuestion, "!is a step, not an entry", "!is a step, not a time", "!is a step, not a time", "0|7|"},
		"file:a.txt":           {"name file:a.txt", "name file:a.txt", "name file:a.txt", "name file:a.txt", noQuestion, noEntry, noTime, noTime, "0||a.txt"},
		"q-3":                  {"name q-3", "name q-3", "name q-3", "name q-3", "q-3", noEntry, noTime, noTime, "0|q-3|q-3"},
		"q-0":                  {"name q-0", "name q-0", "name q-0", "name q-0", noQuestion, noEntry, noTime, noTime, "0|q-0|q-0"},
		"q--3":                 {"name q--3", "name q--3", "name q--3", "name q--3", noQuestion, noEntry, noTime, noTime, "0|q--3|q--3"},
		"7d":                   {"name 7d", "name 7d", "name 7d", "name 7d", noQuestion, noEntry, "2026-11-14 09:30:00", "2026-11-14 09:30:00", "0|7d|7d"},
		"1d2h":                 {"name 1d2h", "name 1d2h", "name 1d2h", "name 1d2h", noQuestion, noEntry, "2026-11-20 07:30:00", "2026-11-20 07:30:00", "0|1d2h|1d2h"},
		"2h":                   {"name 2h", "name 2h", "name 2h", "name 2h", noQuestion, noEntry, "2026-11-21 07:30:00", "2026-11-21 07:30:00", "0|2h|2h"},
		"-2h":                  {"name -2h", "name -2h", "name -2h", "name -2h", noQuestion, noEntry, "!has no sign", "!has no sign", "0|-2h|-2h"},
		"now":                  {"name now", "name now", "name now", "name now", noQuestion, noEntry, "2026-11-21 09:30:00", "2026-11-21 09:30:00", "0|now|now"},
		"yesterday":            {"name yesterday", "name yesterday", "name yesterday", "name yesterday", noQuestion, noEntry, "2026-11-20 00:00:00", "2026-11-20 00:00:00", "0|yesterday|yesterday"},
		"today":                {"name today", "name today", "name today", "name today", noQuestion, noEntry, "2026-11-21 00:00:00", "2026-11-21 00:00:00", "0|today|today"},
		"2026-11-03":           {"name 2026-11-03", "name 2026-11-03", "name 2026-11-03", "name 2026-11-03", noQuestion, noEntry, "2026-11-03 00:00:00", "2026-11-03 00:00:00", "0|2026-11-03|2026-11-03"},
		"2026-11-31":           {"name 2026-11-31", "name 2026-11-31", "name 2026-11-31", "name 2026-11-31", noQuestion, noEntry, noTime, noTime, "0|2026-11-31|2026-11-31"},
		"@1795895684":          {"!is a time", "!is a time", "!is a time", "!is a time", noQuestion, noEntry, "2026-11-28 21:54:44", "2026-11-28 21:54:44", "0|@1795895684|@1795895684"},
		"@-1":                  {"!is a time", "!is a time", "!is a time", "!is a time", noQuestion, noEntry, "!seconds since 1970", "!seconds since 1970", "0|@-1|@-1"},
		"08:00":                {step, step, step, step, noQuestion, "!is a step, not an entry", "2026-11-21 08:00:00", "2026-11-21 08:00:00", "0|08:00|08:00"},
		"23:15:10":             {step, step, step, step, noQuestion, "!is a step, not an entry", "2026-11-20 23:15:10", "2026-11-20 23:15:10", "0|23:15:10|23:15:10"},
		"2026-11-21T06:00:00Z": {"name 2026-11-21T06:00:00Z", "name 2026-11-21T06:00:00Z", "name 2026-11-21T06:00:00Z", "name 2026-11-21T06:00:00Z", noQuestion, noEntry, "2026-11-21 08:00:00", "2026-11-21 08:00:00", "0|2026-11-21T06:00:00Z|2026-11-21T06:00:00Z"},
		"2026-11-21 06:00":     {step, step, step, step, noQuestion, "!is a step, not an entry", "2026-11-21 06:00:00", "2026-11-21 06:00:00", "0|2026-11-21 06:00|2026-11-21 06:00"},
	} {
		for i, place := range places {
			got, err := place.parse(text)
			if part, fails := strings.CutPrefix(want[i], "!"); fails {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%s %q: %s, %v, want an error with %q", place.name, text, got, err, part)
				}
			} else if err != nil || got != want[i] {
				t.Errorf("%s %q: %s, %v, want %s", place.name, text, got, err, want[i])
			}
		}
	}
}

func at(kernel string) string {
	if kernel == "" {
		return ""
	}
	return "@" + kernel
}

func TestSteps(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // a text after "!" is a part of the error
		"claude": "claude 0 0", "claude:12": "claude 12 12", "claude:3..8": "claude 3 8", "claude:3..3": "claude 3 3", "planner/writer:1": "planner/writer 1 1",
		"key:SHA256:AbC": "key:SHA256:AbC 0 0", "claude:latest": "claude:latest 0 0",
		"claude:": "!names no steps", "claude:0": "!names no steps", "claude:8..3": "!names no steps", "claude:3..": "!names no steps", "claude:..3": "!names no steps",
		"claude:1.2": "!names no steps", "claude:1...2": "!names no steps", "claude:99999999999999999999": "!names no steps", ":12": "!names no steps",
		"12": "!steps are those of a name", "-1": "!steps are those of a name", "12:3": "!steps are those of a name", "#12": "!is an entry of the record", "claude@beta:3": "!of another kernel",
		"a//b:3": "!is not an agent", "": "!is not an agent", "@17": "!is a time",
	} {
		s, err := arg.ParseSteps(text)
		got := fmt.Sprint(s.Agent, " ", s.From, " ", s.To)
		if part, fails := strings.CutPrefix(want, "!"); fails && (err == nil || !strings.Contains(err.Error(), part)) || !fails && (err != nil || got != want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"claude:12": "step claude:12", "2h": "2026-11-21 07:30:00", "08:00": "2026-11-21 08:00:00", "yesterday": "2026-11-20 00:00:00",
		"claude:3..8": "!is not a time", "12": "!is not a time", "claude": "!a step is claude:12", "08:99": "!steps are those of a name",
	} {
		s, err := arg.ParseSince(text, now)
		got := ""
		switch {
		case s.Time != nil:
			got = s.Time.Format(time.DateTime)
		case s.Step != nil:
			got = fmt.Sprint("step ", s.Step.Agent, ":", s.Step.From)
		}
		if part, fails := strings.CutPrefix(want, "!"); fails && (err == nil || !strings.Contains(err.Error(), part)) || !fails && (err != nil || got != want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0": 0, "0d": 0,
		"": -1, "d": -1, "7": -1, "-1s": -1, "-1d": -1, "1d-2h": -1, "1d25h": -1, "1.5d": -1, "106752d": -1, "99999999999d": -1, "1d2d": -1,
	} {
		got, err := arg.ParseSpan(text)
		if want < 0 && err == nil || want >= 0 && (got != want || err != nil) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

// TestWhich: a key that is no path is a key, a path that is no key a file, and what is both names both.
func TestWhich(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text          string
		isKey, isFile bool
		want          string
	}{
		{"notes/1", true, false, "key notes/1"},
		{"notes/1", false, false, "key notes/1"},
		{"notes/1", false, true, "file notes/1"},
		{"notes 1", true, true, `"notes 1" is a key and a file: 'key:notes 1' is the key, 'file:notes 1' the file`},
		{"key:notes/1", true, true, "key notes/1"},
		{"file:notes/1", true, true, "file notes/1"},
		{"a:12", true, false, "key a:12"},
		{"a:12", false, true, "file a:12"},
		{"a:12", false, false, `"a:12" is no key; "pwos steps a:12" shows it if it is a step`},
	} {
		s, err := arg.ParseSubject(tt.text)
		if err == nil {
			s, err = s.Which(tt.isKey, tt.isFile)
		}
		got := "key " + s.Key
		switch {
		case err != nil:
			got = err.Error()
		case s.File != "":
			got = "file " + s.File
		}
		if got != tt.want {
			t.Errorf("%s, key %t, file %t: %s, want %s", tt.text, tt.isKey, tt.isFile, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"12", "#12", "a:1", "12@beta", "@12", "7d", "q-3", "2026-11-21", "08:00", "key:a", "a/b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := arg.ParseAgent(text, arg.Who{Operator: true, Abroad: true})
		if err == nil && (a.PID < 0 || a.PID != 0 && a.Name != "") {
			t.Errorf("%q: %+v", text, a)
		}
		if seq, err := arg.ParseEntry(text, 1); err == nil && seq < 1 {
			t.Errorf("%q: entry %d", text, seq)
		}
		if at, err := arg.ParseTime(text, now); err == nil && arg.Millis(at) < 0 {
			t.Errorf("%q: %v", text, at)
		}
		if p, err := arg.ParsePoint(text, 0, now); err == nil && (p.Seq == nil) == (p.Time == nil) {
			t.Errorf("%q: %+v", text, p)
		}
		_, _ = arg.ParseSubject(text)
		if s, err := arg.ParseSteps(text); err == nil && (s.Agent == "" || (s.From == 0) != (s.To == 0) || s.To < s.From) {
			t.Errorf("%q: %+v", text, s)
		}
		if s, err := arg.ParseSince(text, now); err == nil && (s.Step == nil) == (s.Time == nil) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}
