package profile_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema"
)

// here is where the profiles of tests are used.
var here = profile.Here{Dir: "/project", Home: "/home/me", Lookup: func(name string) (string, bool) {
	value, ok := map[string]string{"HERE": "yes", "EMPTY": ""}[name]
	return value, ok
}}

// TestSpawned checks that what an agent is spawned with is what it was when a profile was a list of flags.
func TestSpawned(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/spawned.txtar")
	testkit.Must(t, err)
	dir := t.TempDir()
	for _, file := range archive.Files {
		name, isResult := strings.CutSuffix(file.Name, ".json")
		if !isResult {
			testkit.Must(t, os.WriteFile(filepath.Join(dir, file.Name), file.Data, 0o600))
			continue
		}
		p, err := profile.Read(dir, name)
		testkit.Must(t, err)
		in := schema.SpawnInput{Capabilities: p.Capability()}
		in.Program, err = p.Program(here)
		testkit.Must(t, err)
		if p.TTL > 0 {
			last := int64(math.Ceil(p.TTL.Seconds()))
			in.Capabilities.ExpiresAtTick = &last
		}
		data, err := schema.Marshal(in)
		testkit.Must(t, err)
		var got, want map[string]any
		testkit.Must(t, json.Unmarshal(data, &got))
		testkit.Must(t, json.Unmarshal(file.Data, &want))
		delete(got, "child_agent_id")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: spawned with\n%s, want\n%s", name, data, file.Data)
		}
	}
}

// given is a setting in all its spellings.
type given struct{ file, set, flag, value string }

// TestSpellings checks that each setting has the same typed value by a file, by --set and by its flag, and is kept in a file.
func TestSpellings(t *testing.T) {
	t.Parallel()
	all := map[string]given{
		"policy":              {`"a.cedar"`, "a.cedar", "", ""},
		"sign":                {"true", "true", "", ""},
		"grant.allow":         {`["Memory.*", "Ipc.*"]`, "Memory.*,Ipc.*", "allow", "Memory.*,Ipc.*"},
		"grant.hosts":         {`["a.example"]`, "a.example", "host", "a.example"},
		"grant.helpers":       {`["codex"]`, "codex", "helper", "codex"},
		"grant.localhost":     {`["5432"]`, "5432", "localhost", "5432"},
		"sandbox.publish":     {`["8080:3000"]`, "8080:3000", "publish", "8080:3000"},
		"grant.http_plain":    {"true", "true", "http-plain", "true"},
		"grant.host":          {"true", "true", "", ""},
		"grant.http_open":     {"true", "1", "http-open", "true"},
		"grant.quotas":        {"{ gpu = 2.5 }", "gpu=2.5", "quota", "gpu=2.5"},
		"grant.ttl":           {`"90s"`, "1m30s", "ttl", "90s"},
		"sandbox.level":       {`"strict"`, "strict", "sandbox", "strict"},
		"sandbox.net":         {`"none"`, "none", "net", "none"},
		"sandbox.read":        {`["/a"]`, "/a", "read", "/a"},
		"sandbox.write":       {`["/a"]`, "/a", "write", "/a"},
		"sandbox.hide":        {`["/a"]`, "/a", "hide", "/a"},
		"sandbox.review":      {"true", "true", "review", "true"},
		"sandbox.allow_gaps":  {"true", "true", "allow-gaps", "true"},
		"limits.cpu_seconds":  {"3", "3", "limit", "cpu_seconds=3"},
		"limits.wall_seconds": {"3", "3", "limit", "wall_seconds=3"},
		"limits.memory_bytes": {`"256M"`, "256M", "limit", "memory_bytes=268435456"},
		"limits.open_files":   {"1024", "1K", "limit", "open_files=1K"},
		"limits.processes":    {"3", "3", "limit", "processes=3"},
		"budget.calls":        {"0", "0", "budget", "calls=0"},
		"budget.fetches":      {"3", "3", "budget", "fetches=3"},
		"budget.tokens":       {"1_000", "1000", "budget", "tokens=1000"},
		"budget.usd":          {"2", "2.0", "budget", "usd=2"},
		"budget.wall_seconds": {"3", "3", "budget", "wall_seconds=3"},
		"program.env":         {`["A=b=c"]`, "A=b=c", "env", "A=b=c"},
		"program.dir":         {`"/a"`, "/a", "dir", "/a"},
		"program.own_dir":     {"true", "true", "own-dir", "true"},
		"program.user":        {`"me"`, "me", "user", "me"},
		"program.home":        {`"/a"`, "/a", "home", "/a"},
		"program.cache":       {"true", "true", "cache", "true"},
		"program.restart":     {`"always"`, "always", "restart", "always"},
		"program.channel":     {`"fd3"`, "fd3", "channel", "fd3"},
		"program.preset":      {`"none"`, "none", "preset", "none"},
	}
	for _, s := range profile.Settings() {
		one, ok := all[s.Key]
		if !ok {
			t.Errorf("%s has no test", s.Key)
			continue
		}
		file, err := profile.Parse("own.toml", []byte(s.Key+" = "+one.file))
		testkit.Must(t, err)
		if reflect.DeepEqual(file, new(profile.Profile)) {
			t.Errorf("%s = %s sets nothing", s.Key, one.file)
		}
		var set, flag profile.Line
		testkit.Must(t, set.Set(s.Key+"="+one.set))
		if got := set.Profile(); !reflect.DeepEqual(got, file) {
			t.Errorf("--set %s=%s is %+v, in a file %+v", s.Key, one.set, got, file)
		}
		if one.flag != "" {
			testkit.Must(t, flag.Flag(one.flag, one.value))
			if got := flag.Profile(); !reflect.DeepEqual(got, file) {
				t.Errorf("--%s %s is %+v, in a file %+v", one.flag, one.value, got, file)
			}
		}
		text, err := file.TOML()
		testkit.Must(t, err)
		if again, err := profile.Parse("own.toml", text); err != nil || !reflect.DeepEqual(again, file) {
			t.Errorf("%s is kept as %s, which is %+v, %v", s.Key, text, again, err)
		}
	}
	for _, f := range profile.Flags() {
		if err := new(profile.Line).Flag(f.Name, "\x00"); f.About == "" || err == nil && f.Name == "net" {
			t.Errorf("--%s: %q, %v", f.Name, f.About, err)
		}
	}
}

// TestOver checks that the first value of a command line replaces that of a profile, and what later ones do.
func TestOver(t *testing.T) {
	t.Parallel()
	const file = `
grant.allow = ["Memory.*"]
grant.quotas = { gpu = 1, "a.b" = 2 }
sandbox.net = "none"
limits = { processes = 1, open_files = 8 }
budget = { calls = 1, usd = 1 }
`
	for _, tt := range []struct {
		line     []string // --set KEY=VALUE without the dashes, or a flag
		want     string   // a file
		replaced string
	}{
		{nil, file, ""},
		{[]string{"allow=Ipc.*", "set grant.allow=Clock.Get"}, `grant.allow = ["Ipc.*", "Clock.Get"]`, "--allow"},
		{[]string{"set grant.allow=Clock.Get", "allow="}, `grant.allow = ["Clock.Get"]`, "--set grant.allow"},
		{[]string{"net=open", "set sandbox.net=kernel"}, `sandbox.net = "kernel"`, "--net"},
		{[]string{"set sandbox.net=kernel", "net=open", "set sandbox.level=off"}, "sandbox.net = \"open\"\nsandbox.level = \"off\"", "--set sandbox.net"},
		{[]string{"quota=gpu=3", "set grant.quotas.c.d=4"}, `grant.quotas = { gpu = 3, "c.d" = 4 }`, "--quota"},
		{[]string{"set limits.processes=2"}, "limits = { processes = 2, open_files = 8 }", "--set limits.processes"},
		{[]string{"limit=processes=2"}, "limits = { processes = 2 }", "--limit"},
		{[]string{"set limits.open_files=9", "limit=processes=2", "set limits.processes=3"}, "limits = { processes = 3, open_files = 9 }", "--set limits.open_files --limit"},
		{[]string{"budget=usd=2", "budget=calls=6"}, "budget = { calls = 6, usd = 2 }", "--budget"},
		{[]string{"budget="}, "budget = {}", "--budget"},
		{[]string{"http-plain=false"}, "grant.http_plain = false", ""},
	} {
		var line profile.Line
		for _, text := range tt.line {
			if setting, ok := strings.CutPrefix(text, "set "); ok {
				testkit.Must(t, line.Set(setting))
				continue
			}
			name, value, _ := strings.Cut(text, "=")
			testkit.Must(t, line.Flag(name, value))
		}
		p, err := profile.Parse("own.toml", []byte(file))
		testkit.Must(t, err)
		replaced := strings.Join(line.Over(p), " ")
		want, err := profile.Parse("own.toml", []byte(file))
		testkit.Must(t, err)
		if tt.line != nil {
			more, err := profile.Parse("own.toml", []byte(tt.want))
			testkit.Must(t, err)
			for i, v := range reflect.ValueOf(more).Elem().Fields() {
				if table := strings.Fields(tt.want)[0]; !v.IsZero() || table == "budget" && i.Name == "Budget" {
					reflect.ValueOf(want).Elem().FieldByIndex(i.Index).Set(v)
				}
			}
		}
		if !reflect.DeepEqual(p, want) || replaced != tt.replaced {
			t.Errorf("%q: %+v, want %+v; it replaced %q, want %q", tt.line, p, want, replaced, tt.replaced)
		}
	}
}

// TestBadFile checks that an error of a file has its line, its key, and what that takes.
func TestBadFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[budget]\ncalls = -1\n":                     "own.toml:2: budget.calls takes a whole number of at least 0, such as 10 or 256M, not -1",
		"[budget]\nusd = nan\n":                      "own.toml:2: budget.usd takes an amount such as 2 or 0.5, of at most 1000000, not NaN",
		"[budget]\ncalls = 1.5\n":                    "own.toml:2: budget.calls takes a whole number",
		"[budget]\n\nembraces = 1\n":                 "own.toml:3: there is no setting budget.embraces: [budget] has calls, fetches,",
		"[grant]\nalow = [\"a\"]\n":                  "own.toml:2: there is no setting grant.alow; did you mean grant.allow?",
		"[grant]\nallow = []\n":                      "own.toml:2: grant.allow takes a list of syscalls, at least one (Syscall.Ping adds no right), not []",
		"[grant]\nallow = \"a\"\n":                   "own.toml:2: grant.allow takes a list of syscalls, at least one (Syscall.Ping adds no right), not \"a\"",
		"[grant]\nallow = [1]\n":                     "own.toml:2: grant.allow takes a list of syscalls",
		"[grant]\nttl = \"soon\"\n":                  "own.toml:2: grant.ttl takes a duration such as 5m, of at least 1s, not \"soon\"",
		"[grant]\nttl = 5\n":                         "own.toml:2: grant.ttl takes a duration",
		"[grant]\nttl = \"10ms\"\n":                  "own.toml:2: grant.ttl takes a duration such as 5m, of at least 1s",
		"[grant.quotas]\ngpu = 1\na = -1\n":          "own.toml:3: grant.quotas.a takes a number of at least 0, not -1",
		"grant = {\nquotas = { gpu = inf } }\n":      "own.toml:2: grant.quotas.gpu takes a number of at least 0, not +Inf",
		"[grant]\nquotas = 5\n":                      "own.toml:2: grant.quotas is a table",
		"grant = 5\n":                                "own.toml:1: grant is a table",
		"[[grant]]\nallow = [\"a\"]\n":               "own.toml:1: grant is not a list of tables",
		"\"grant.allow\" = [\"a\"]\n":                `own.toml:1: there is no setting "grant.allow"`,
		"\"a\\u001b\" = 1\n":                         `own.toml:1: there is no setting "a\x1b"`,
		"[nothing]\n":                                `own.toml:1: there is no setting nothing: "pwos help settings" lists all`,
		"[limits]\nopen_files = 0\n":                 "own.toml:2: limits.open_files takes a whole number from 8 to 2147483647, not 0",
		"[limits]\nmemory_bytes = \"9999999999G\"\n": "own.toml:2: limits.memory_bytes takes a whole number",
		"[limits.open_files]\nx = 1\n":               "own.toml:1: there is no setting limits.open_files",
		"policy = \"../a.cedar\"\n":                  "own.toml:1: policy takes the name of a file beside the profile",
		"policy = \"a.toml\"\n":                      "own.toml:1: policy takes the name of a file beside the profile",
		"[sandbox]\nnet = \"wide\"\n":                `own.toml:2: sandbox.net takes none, kernel or open, not "wide"`,
		"[sandbox]\nallow_gaps = 1\n":                "own.toml:2: sandbox.allow_gaps takes true or false, not 1",
		"[program]\nenv = [\"=x\"]\n":                "own.toml:2: program.env takes a list of variables",
		"[grant\n":                                   "own.toml:1: expected ']'",
		"[grant]\nallow=[\"a\"]\nallow=[\"b\"]":      "own.toml:3: key allow is already defined",
	} {
		if p, err := profile.Parse("own.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, p, err, want)
		}
	}
}

// TestBadLine checks that an error of a command line names the flag, what it takes, and a setting that may be meant.
func TestBadLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"set grant.alow=a":               "--set: there is no setting grant.alow; did you mean grant.allow?",
		"set limits.speed=1":             "--set: there is no setting limits.speed: [limits] has cpu_seconds,",
		"set x=1":                        `--set: there is no setting x: "pwos help settings" lists all`,
		"set grant=1":                    "--set: there is no setting grant",
		"set =1":                         "--set: there is no setting",
		"set grant.allow":                `--set takes KEY=VALUE, not "grant.allow"`,
		"set grant.quotas=gpu":           `--set grant.quotas takes resource=amount, with a number of at least 0, not "gpu"`,
		"set grant.quotas.gpu=-1":        `--set grant.quotas.gpu takes resource=amount, with a number of at least 0`,
		"set sandbox.read=":              `--set sandbox.read takes paths, not ""`,
		"set budget.calls=1.5":           "--set budget.calls takes a whole number of at least 0",
		"set snapshot.limit=0":           "--set snapshot.limit takes a whole number of at least 1",
		"quota gpu":                      `--quota takes resource=amount, not "gpu"`,
		"quota =1":                       "--quota takes resource=amount",
		"quota gpu=0x10":                 "--quota takes resource=amount",
		"quota a=b=1":                    "--quota takes resource=amount",
		"quota gpu=NaN":                  "--quota takes resource=amount",
		"quota gpu=1e999":                "--quota takes resource=amount",
		"limit cpu_seconds":              `--limit takes name=number, not "cpu_seconds"`,
		"limit cpu_seconds=":             "--limit cpu_seconds takes a whole number from 1 to",
		"limit cpu_seconds=-1":           "--limit cpu_seconds takes a whole number from 1 to",
		"limit cpu_seconds=1KK":          "--limit cpu_seconds takes a whole number from 1 to",
		"limit cpu_seconds=K":            "--limit cpu_seconds takes a whole number from 1 to",
		"limit memory_bytes=8589934592G": "--limit memory_bytes takes a whole number of at least 1",
		"limit memory=1":                 "--limit: there is no setting limits.memory",
		"limit =1":                       "--limit: there is no setting limits.",
		"budget calls=1,usd":             `--budget takes kind=amount, not "usd"`,
		"budget calls=1,calls=2":         "--budget names calls twice",
		"budget usd=2000000":             "--budget usd takes an amount such as 2 or 0.5, of at most 1000000",
		"budget call=1":                  "--budget: there is no setting budget.call; did you mean budget.calls?",
		"restart ":                       `--restart takes never, on-failure or always, not ""`,
		"http-open maybe":                `--http-open takes true or false, not "maybe"`,
		"env =x":                         "--env takes variables, as NAME=value or NAME",
		"env ":                           "--env takes variables, as NAME=value or NAME",
		"read ":                          `--read takes paths, not ""`,
		"ttl 0":                          "--ttl takes a duration such as 5m, of at least 1s",
	} {
		var line profile.Line
		name, value, _ := strings.Cut(text, " ")
		err := line.Set(value)
		if name != "set" {
			err = line.Flag(name, value)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--%s: %v, want %q", text, err, want)
		}
		if got := line.Profile(); !reflect.DeepEqual(got, new(profile.Profile)) {
			t.Errorf("--%s sets %+v", text, got)
		}
	}
}

// TestTwice checks that a flag names nothing twice, while of two values of a setting the last one counts.
func TestTwice(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"quota": "gpu=1", "limit": "processes=1", "budget": "calls=1"} {
		var line profile.Line
		testkit.Must(t, line.Flag(name, text))
		if err := line.Flag(name, text); err == nil || !strings.Contains(err.Error(), "--"+name+" names ") {
			t.Errorf("--%s %s twice: %v", name, text, err)
		}
	}
	var line profile.Line
	for _, text := range []string{"grant.quotas.gpu=1", "grant.quotas.gpu=2", "limits.processes=1", "limits.processes=2"} {
		testkit.Must(t, line.Set(text))
	}
	if p := line.Profile(); p.Quotas["gpu"] != 2 || *p.Limits.Processes != 2 {
		t.Errorf("the last values do not count: %+v", p)
	}
}

// TestHere checks what paths and variables of a profile mean, and that a budget of 0 is kept.
func TestHere(t *testing.T) {
	t.Parallel()
	p, err := profile.Parse("own.toml", []byte("sandbox.read = ['.', '~/data', '/etc/', 'sub']\nbudget.calls = 0\nprogram.env = ['A=b=c', 'HERE', 'EMPTY', 'NONE=']\n"))
	testkit.Must(t, err)
	program, err := p.Program(here)
	testkit.Must(t, err)
	if got := strings.Join(program.Sandbox.Read, " "); got != "/project /home/me/data /etc /project/sub" {
		t.Errorf("it may read %s", got)
	}
	if want := map[string]string{"A": "b=c", "HERE": "yes", "EMPTY": "", "NONE": ""}; !reflect.DeepEqual(program.Env, want) {
		t.Errorf("the environment is %q", program.Env)
	}
	if c := p.Capability(); c == nil || c.Budget == nil || *c.Budget.Calls != 0 || p.Placed() != "." {
		t.Errorf("it is granted %+v; %q depends on the directory", c, p.Placed())
	}
	link := filepath.Join(t.TempDir(), "link")
	testkit.Must(t, os.Symlink("/", link))
	followed, err := (&profile.Profile{Read: []string{link}, Write: []string{link}, Hide: []string{link}}).Program(here)
	testkit.Must(t, err)
	if s := followed.Sandbox; s.Read[0] != "/" || s.Write[0] != "/" || s.Hide[0] != link {
		t.Errorf("a link is read as %s, written as %s, hidden as %s", s.Read, s.Write, s.Hide)
	}
	homeless := profile.Here{Dir: "/project"}
	if _, err := p.Program(profile.Here{Dir: "/project", Lookup: here.Lookup}); err == nil || !strings.Contains(err.Error(), "HOME is not set") {
		t.Errorf("without a home: %v", err)
	}
	homeless.Lookup = func(string) (string, bool) { return "", false }
	if _, err := p.Program(homeless); err == nil || !strings.Contains(err.Error(), "the variable HERE is not set here") {
		t.Errorf("without a variable: %v", err)
	}
	var line profile.Line
	testkit.Must(t, line.Flag("read", "sub"))
	wd, err := os.Getwd()
	testkit.Must(t, err)
	if got := line.Profile(); got.Read[0] != filepath.Join(wd, "sub") || got.Placed() != "" {
		t.Errorf("--read sub means %s", got.Read)
	}
	testkit.Must(t, line.Set("program.env=A=b"))
	testkit.Must(t, line.Set("grant.quotas.gpu=2"))
	if got := strings.Join(line.Words("grant."), " "); got != "--read=sub --set=program.env=A=b" {
		t.Errorf("the words are %s", got)
	}
	var nothing profile.Line
	testkit.Must(t, nothing.Flag("allow", ""))
	if c := nothing.Profile().Capability(); c == nil || c.AllowedSyscalls == nil || len(c.AllowedSyscalls) > 0 {
		t.Errorf("--allow '' grants %+v, not nothing", c)
	}
	if p := new(profile.Profile); p.Capability() != nil {
		t.Errorf("nothing grants %+v", p.Capability())
	}
	if ttl, err := profile.Parse("own.toml", []byte(`grant.ttl = "1h"`)); err != nil || ttl.TTL != time.Hour || ttl.Capability() == nil {
		t.Errorf("an hour is %+v, %v", ttl, err)
	}
}

// TestNames: each shipped profile can be read.
func TestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := profile.Names(dir)
	if got := strings.Join(names, " "); got != "coder reader worker" {
		t.Errorf("there are %s", got)
	}
	for _, name := range names {
		if p, err := profile.Read(dir, name); err != nil || len(p.Allow) == 0 || p.Name != name {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for name, want := range map[string]bool{
		"reader": true, "my own": true, strings.Repeat("x", 100): true,
		strings.Repeat("x", 101): false, "": false, "a/b": false, `a\b`: false, ".a": false, "a\nb": false,
	} {
		if got := profile.IsName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// FuzzParse: a text is a profile or an error with a line of the text, and a profile that is kept is read as the same one.
func FuzzParse(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/spawned.txtar")
	testkit.Must(f, err)
	for _, file := range archive.Files {
		if strings.HasSuffix(file.Name, ".toml") {
			f.Add(file.Data)
		}
	}
	for _, text := range []string{"[[grant]]", "grant = {quotas = {a = 1}}", "limits.memory_bytes = '1G'", "[grant.quotas.x]", "grant.quotas.'' = 1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := profile.Parse("own.toml", text)
		if err != nil {
			at := regexp.MustCompile(`^profile own\.toml:([1-9][0-9]*): .`).FindStringSubmatch(err.Error())
			if at == nil {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		kept, err := p.TOML()
		testkit.Must(t, err)
		again, err := profile.Parse("kept.toml", kept)
		if err != nil {
			t.Fatalf("%q is kept as %q: %v", text, kept, err)
		}
		if more, err := again.TOML(); err != nil || string(more) != string(kept) {
			t.Fatalf("%q is kept as %q, then as %q, %v", text, kept, more, err)
		}
	})
}

// TestRetired: a setting without effect is accepted wherever it was, and is not among those that are listed.
func TestRetired(t *testing.T) {
	t.Parallel()
	file, err := profile.Parse("own.toml", []byte("snapshot = {take = true, limit = \"1G\", skip = [\"x\"]}"))
	testkit.Must(t, err)
	var line profile.Line
	for flag, text := range map[string]string{"snapshot": "true", "snapshot-limit": "1G", "snapshot-skip": "x"} {
		testkit.Must(t, line.Flag(flag, text))
	}
	if got := line.Profile(); !reflect.DeepEqual(got, file) || file.Retired() != "--snapshot" || new(profile.Profile).Retired() != "" {
		t.Errorf("a file has %+v, a command line %+v; retired are %q", file, got, file.Retired())
	}
	for _, s := range profile.Settings() {
		if strings.HasPrefix(s.Key, "snapshot.") {
			t.Errorf("%s is listed", s.Key)
		}
	}
}
