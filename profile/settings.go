package profile

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is a row of the table of settings.
type Setting struct {
	Key   string // in a profile's file, and of --set
	Takes string // its values, in words
	About string
	Flag  string // of pwos run, without the dashes; "": only a Group has it
	Shown bool   // whether the help of pwos run has the flag
	Many  bool   // whether it is a list
	Yes   bool   // whether it is true or false

	path    bool                   // its values are paths
	form    string                 // "resource=amount" of a table whose names the user chooses; "": it is none
	put     func(text string) bool // sets the value of a command line, or adds one to a list; false: it is not valid
	load    func(value any) bool   // sets the value of a file
	discard func()
	value   func() any // as in a file; nil: it is not set
}

// Settings returns the table of all settings.
func Settings() []*Setting { return new(Profile).settings() }

// settings returns the table of all settings, whose rows set members of p.
func (p *Profile) settings() []*Setting {
	const most = math.MaxInt64
	const safe = 1<<53 - 1 // the largest integer that every reader of JSON keeps
	return []*Setting{
		text("policy", &p.Policy, "the name of a file beside the profile that ends in .cedar", isRules).about("rules that the kernel must have loaded"),

		list("grant.allow", &p.Allow, 1, "syscalls, at least one (Syscall.Ping adds no right)", nil).commas(&p.Allow).
			about("what it may call, as in cap grant, separated by commas").flag("allow").shown(),
		list("grant.hosts", &p.Hosts, 0, "servers", nil).
			about("server that it may reach: a name, *.name, an address, or * for any name; a port may follow").flag("host").shown(),
		yes("grant.http_plain", &p.HTTPPlain).about("also allow plain http:").flag("http-plain"),
		yes("grant.http_open", &p.HTTPOpen).about("open sealed header values for it").flag("http-open"),
		amounts("grant.quotas", &p.Quotas).about("most units of a resource that it may hold at once, as resource=amount").flag("quota"),
		span("grant.ttl", &p.TTL, time.Second).about("how long its grant is valid, in ticks of a second (default: it does not expire)").flag("ttl"),

		choice("sandbox.level", &p.Level, "default", "strict", "off").
			about("what this machine supports, only system files and what is named, or no confinement").flag("sandbox"),
		choice("sandbox.net", &p.Net, "none", "kernel", "open").
			about("no network, through the kernel, or as the kernel's user (default kernel; none with strict, open with off)").flag("net"),
		list("sandbox.read", &p.Read, 0, "paths", nil).paths().about("a path outside its directory that it may read").flag("read").shown(),
		list("sandbox.write", &p.Write, 0, "paths", nil).paths().about("a path outside its directory that it may write").flag("write").shown(),
		list("sandbox.hide", &p.Hide, 0, "paths", nil).paths().about("a path that is hidden from it").flag("hide").shown(),
		yes("sandbox.allow_gaps", &p.AllowGaps).about("run it even if this machine cannot hide the kernel's state and keys").flag("allow-gaps"),

		whole("limits.cpu_seconds", &p.Limits.CPUSeconds, 1, most).about("processor time of one process"),
		whole("limits.wall_seconds", &p.Limits.WallSeconds, 1, most).about("time from its start"),
		whole("limits.memory_bytes", &p.Limits.MemoryBytes, 1, most).about("private writable memory of one process"),
		whole("limits.open_files", &p.Limits.OpenFiles, 1, most).about("open descriptors of one process"),
		whole("limits.processes", &p.Limits.Processes, 1, most).about("processes at once"),

		whole("budget.calls", &p.Budget.Calls, 0, safe).about("calls that are not refused, in total"),
		whole("budget.fetches", &p.Budget.Fetches, 0, safe).about("Http.Fetch, connections and requests, in total"),
		whole("budget.tokens", &p.Budget.Tokens, 0, safe).about("tokens of models behind upstreams, in total"),
		dollars("budget.usd", &p.Budget.USD).about("what these cost, in US dollars"),
		whole("budget.wall_seconds", &p.Budget.WallSeconds, 0, safe).about("time from its start, of its descendants too"),

		list("program.env", &p.Env, 0, "variables, as NAME=value or NAME", isVariable).
			about("a variable, as NAME=value, or NAME for its value here").flag("env").shown(),
		text("program.dir", &p.Dir, "a path", nil).paths().about("working directory, where it may write (default: the current one)").flag("dir"),
		yes("program.own_dir", &p.OwnDir).about("work in a new directory instead").flag("own-dir"),
		text("program.home", &p.Home, "a path", nil).paths().about("its HOME (default: its working directory)").flag("home").shown(),
		choice("program.restart", &p.Restart, "never", "on-failure", "always").about("when to restart it (default never)").flag("restart"),
		choice("program.channel", &p.Channel, "stdio", "fd3").about("its channel to the kernel: stdio or fd3 (default stdio)").flag("channel").shown(),
		choice("program.preset", &p.Preset, "claude", "codex", "none").about("setup for a known program (default: by its name)").flag("preset"),

		yes("snapshot.take", &p.Snapshot.Take).about(`copy its working directory first: "pwos undo --files PID" restores it`).flag("snapshot"),
		whole("snapshot.limit", &p.Snapshot.Limit, 1, most).
			about("most bytes that a copy may take where the file system cannot share blocks (default 2G)").flag("snapshot-limit"),
		list("snapshot.skip", &p.Snapshot.Skip, 0, "names, or paths with a slash", nil).
			about("leave this out of the copy and of the undo, such as node_modules or build/*.o").flag("snapshot-skip"),
	}
}

// group is a flag for several settings: it takes the last word of a key, and a value.
type group struct {
	Flag
	prefix string
	form   string // "kind=amount"
	comma  bool   // several of them, separated by commas
}

func groups() []group {
	return []group{
		{prefix: "limits.", form: "name=number", Flag: Flag{Name: "limit", About: "cpu_seconds, wall_seconds, memory_bytes, open_files or processes, as name=number"}},
		{prefix: "budget.", form: "kind=amount", comma: true, Flag: Flag{
			Name: "budget", Shown: true,
			About: "most that it may use in total, such as calls=500,fetches=100,tokens=200000,usd=2,wall_seconds=60",
		}},
	}
}

// Flag describes a flag of pwos run that sets settings.
type Flag struct {
	Name, About string
	Shown       bool // whether the help of pwos run has it
	Yes         bool // whether it is true or false
}

// Flags returns the flags that set settings.
func Flags() (all []Flag) {
	for _, s := range Settings() {
		if s.Flag != "" {
			f := Flag{s.Flag, s.About, s.Shown, s.Yes}
			if s.Many || s.form != "" {
				f.About += "; may be repeated"
			}
			all = append(all, f)
		}
	}
	for _, g := range groups() {
		all = append(all, g.Flag)
	}
	return all
}

func (s *Setting) about(text string) *Setting { s.About = text; return s }
func (s *Setting) flag(name string) *Setting  { s.Flag = name; return s }
func (s *Setting) shown() *Setting            { s.Shown = true; return s }
func (s *Setting) paths() *Setting            { s.path = true; return s }

// row returns the row of a value. The values of a file have the type F.
func row[T, F any](key string, at *T, takes string, put func(text string) bool, load func(F) bool) *Setting {
	return &Setting{
		Key: key, Takes: takes, put: put,
		load: func(value any) bool {
			v, ok := value.(F)
			return ok && load(v)
		},
		discard: func() { *at = *new(T) },
		value: func() any {
			if v := reflect.ValueOf(at).Elem(); !v.IsZero() {
				return reflect.Indirect(v).Interface()
			}
			return nil
		},
	}
}

// text returns the row of a text, which in a file may be empty for none. valid may be nil.
func text(key string, at *string, takes string, valid func(string) bool) *Setting {
	put := func(text string) bool {
		*at = text
		return valid == nil || valid(text)
	}
	return row(key, at, takes, put, put)
}

func choice(key string, at *string, values ...string) *Setting {
	last := len(values) - 1
	s := text(key, at, strings.Join(values[:last], ", ")+" or "+values[last], func(text string) bool { return text == "" || slices.Contains(values, text) })
	put := s.put
	s.put = func(text string) bool { return text != "" && put(text) }
	return s
}

// list returns the row of a list, which in a file has at least so many items. valid may be nil.
func list(key string, at *[]string, least int, takes string, valid func(item string) bool) *Setting {
	add := func(item string) bool {
		*at = append(*at, item)
		return valid == nil || valid(item)
	}
	s := row(key, at, takes, add, func(items []any) bool {
		*at = nil
		for _, item := range items {
			if text, ok := item.(string); !ok || !add(text) {
				return false
			}
		}
		return len(items) >= least
	})
	s.Many = true
	return s
}

// commas makes a text of the command line several items of the list, separated by commas; "" makes it an empty list.
func (s *Setting) commas(at *[]string) *Setting {
	s.put = func(text string) bool {
		*at = append([]string{}, *at...)
		if text != "" {
			*at = append(*at, strings.Split(text, ",")...)
		}
		return true
	}
	return s
}

func yes(key string, at *bool) *Setting {
	s := row(key, at, "true or false", func(text string) (ok bool) {
		on, err := strconv.ParseBool(text)
		*at = on
		return err == nil
	}, func(on bool) bool {
		*at = on
		return true
	})
	s.Yes = true
	return s
}

// whole returns the row of a whole number, which in a file may be a text with a suffix too.
func whole(key string, at **int64, least, most int64) *Setting {
	valid := func(n int64, ok bool) bool {
		*at = &n
		return ok && n >= least && n <= most
	}
	put := func(text string) bool { return valid(Count(text)) }
	return row(key, at, fmt.Sprintf("a whole number of at least %d, such as 10 or 256M", least), put, func(value any) bool {
		if text, ok := value.(string); ok {
			return put(text)
		}
		n, ok := value.(int64)
		return valid(n, ok)
	})
}

// Count parses a whole number, with an optional suffix K, M or G (powers of 1024).
func Count(text string) (n int64, ok bool) {
	digits := strings.TrimRight(text, "KMG")
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	return n << shift, ok && err == nil && n >= 0 && n <= math.MaxInt64>>shift
}

func dollars(key string, at **float64) *Setting {
	load := func(value any) bool {
		n, ok := number(value)
		*at = &n
		return ok && n <= 1e6
	}
	return row(key, at, "an amount such as 2 or 0.5, of at most a million", func(text string) bool {
		n, err := strconv.ParseFloat(text, 64)
		return err == nil && load(n)
	}, load)
}

// number returns a number of a file that is at least 0 and finite.
func number(value any) (n float64, ok bool) {
	switch v := value.(type) {
	case int64:
		n, ok = float64(v), true
	case float64:
		n, ok = v, true
	}
	return n, ok && n >= 0 && n <= math.MaxFloat64
}

// amounts returns the row of a table of numbers. Each entry of a file is loaded by itself.
func amounts(key string, at *map[string]float64) *Setting {
	add := func(name string, value any) bool {
		n, ok := number(value)
		if *at == nil {
			*at = make(map[string]float64)
		}
		(*at)[name] = n
		return ok && name != ""
	}
	s := row(key, at, "a number of at least 0", func(text string) bool {
		name, amount, _ := strings.Cut(text, "=")
		n, err := strconv.ParseFloat(amount, 64)
		return err == nil && add(name, n)
	}, func(entry map[string]any) bool {
		for name, value := range entry {
			return add(name, value)
		}
		return true
	})
	s.form = "resource=amount"
	return s
}

// span returns the row of a duration, which in a file may be empty for none.
func span(key string, at *time.Duration, least time.Duration) *Setting {
	put := func(text string) bool {
		d, err := time.ParseDuration(text)
		*at = d
		return err == nil && d >= least
	}
	s := row(key, at, fmt.Sprintf("a duration such as 5m, of at least %v", least), put, func(text string) bool { return text == "" || put(text) })
	s.value = func() any {
		if *at == 0 {
			return nil
		}
		return at.String()
	}
	return s
}

func isRules(file string) bool {
	return file == "" || filepath.Base(file) == file && strings.HasSuffix(file, ".cedar") && !strings.HasPrefix(file, ".")
}

func isVariable(text string) bool {
	name, _, _ := strings.Cut(text, "=")
	return name != ""
}
