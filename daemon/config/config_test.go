package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func defaults() config.Config {
	return config.Default(env("XDG_RUNTIME_DIR", "/run/user/7"), 7, "/home/me")
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		text string
		want func(*config.Config) // nil: an error is expected
		says string               // in the error
	}{
		{name: "empty", want: func(*config.Config) {}},
		{name: "directories", text: "runtime_dir = '/r'\nstate_dir = '/s'", want: func(c *config.Config) { c.RuntimeDir, c.StateDir = "/r", "/s" }},
		{name: "idle", text: "idle_timeout = '1h30m'", want: func(c *config.Config) { c.IdleTimeout = config.Duration(90 * time.Minute) }},
		{name: "log", text: "[log]\nlevel = 'warn'\nformat = 'json'", want: func(c *config.Config) { c.Log.Level, c.Log.Format = 4, "json" }},
		{name: "larger lines", text: "limits.line_bytes = 65536", want: func(c *config.Config) { c.Limits.LineBytes = 65536 }},

		{name: "journal", text: "[journal]\nsync = 'interval'\nsync_interval = '1s'\nsnapshot_every = 1", want: func(c *config.Config) {
			c.Journal = config.Journal{Sync: config.Interval, SyncInterval: config.Duration(time.Second), SnapshotEvery: 1}
		}},
		{name: "bounds of agents", text: "[agents]\nconnections = 1\nprologues = 2\nin_flight_bytes = 2097152\njournal_bytes_per_second = 65537\njournal_burst_bytes = 65538\ndisk_bytes = 1048577", want: func(c *config.Config) {
			a := &c.Agents
			a.Connections, a.Prologues, a.InFlightBytes, a.JournalBytesPerSecond, a.JournalBurstBytes, a.DiskBytes = 1, 2, 2097152, 65537, 65538, 1048577
		}},
		{name: "what agents may see", text: "[agents]\nread = ['/srv/data']\nhide = ['~/private', '/srv/keys']\nuser = 'nobody'", want: func(c *config.Config) {
			c.Agents.Read, c.Agents.Hide, c.Agents.User = []string{"/srv/data"}, []string{"~/private", "/srv/keys"}, "nobody"
		}},
		{name: "a relative path to read", text: "[agents]\nread = ['data']", says: "line 2: agents.read: \"data\" must be an absolute path"},
		{name: "no connections", text: "[agents]\nconnections = 0", says: "line 2: agents.connections: 0 must be at least 1"},
		{name: "no prologues", text: "[agents]\nprologues = 0", says: "line 2: agents.prologues: 0 must be from 1 to 32"},
		{name: "nothing in flight", text: "[agents]\nin_flight_bytes = 1", says: "line 2: agents.in_flight_bytes: 1 must be at least 2097152"},
		{name: "no journal", text: "[agents]\njournal_bytes_per_second = 1", says: "line 2: agents.journal_bytes_per_second: 1 must be at least 65536"},
		{name: "no burst", text: "[agents]\njournal_burst_bytes = 1", says: "line 2: agents.journal_burst_bytes: 1 must be at least 65536"},
		{name: "no disk", text: "[agents]\ndisk_bytes = 0", says: "line 2: agents.disk_bytes: 0 must be at least 1048576"},
		{name: "other durability", text: "[journal]\nsync = 'never'", says: `line 2: journal.sync: "never" must be always or interval`},
		{name: "no time to sync", text: "[journal]\nsync_interval = '0s'", says: "line 2: journal.sync_interval: 0s must be greater than 0"},
		{name: "no snapshots", text: "[journal]\nsnapshot_every = 0", says: "line 2: journal.snapshot_every: "},
		{name: "listener", text: "[listen]\ntls = '[::1]:7443'", want: func(c *config.Config) { c.Listen.TLS = "[::1]:7443" }},
		{name: "listener everywhere", text: "listen.tls = ':0'", want: func(c *config.Config) { c.Listen.TLS = ":0" }},
		{name: "listener without port", text: "[listen]\ntls = 'kernel'", says: `line 2: listen.tls: "kernel" must be HOST:PORT, such as 0.0.0.0:7443`},
		{name: "listener with a service", text: "listen.tls = 'kernel:https'", says: `"kernel:https" must be HOST:PORT`},
		{name: "listener as an address", text: "listen.tls = 'tls://kernel:7443'", says: "must be HOST:PORT"},
		{name: "sealing key", text: "[crypto]\nidentity = '/k'", want: func(c *config.Config) { c.Crypto.Identity = "/k" }},

		{name: "unknown key", text: "\nlimits.line_byte = 1", says: "line 2: limits.line_byte: no setting has this name: there are limits.line_bytes"},
		{name: "unknown key in no table", text: "foo = 1", says: "line 1: foo: no setting has this name: there are [agents], [approval], [blobs], [clock], [cluster], [code], [crypto], [http], [ingest], [ipc], [journal], [limits], [listen], [log], [mounts], [net], [prices], [record], [resources], [snapshots], [steps], [terminal], [tools], [upstream], authorized_keys, idle_timeout, init, origin, root, runtime_dir, state_dir"},
		{name: "unknown table", text: "[limit]\nx = 1", says: "line 1: limit: no setting has this name"},
		{name: "not TOML", text: "log = [", says: "line 1"},
		{name: "twice", text: "state_dir = '/a'\nstate_dir = '/b'", says: "line 2"},
		{name: "wrong type", text: "limits.line_bytes = 'many'", says: "line 1: limits.line_bytes: takes an integer"},
		{name: "hidden character in a name", text: "[resources]\n\"gpu\\u200b\" = 1", says: "the name must have only visible characters"},
		{name: "no number", text: "resources.gpu = 'x'", says: "line 1: resources.gpu: takes a number"},
		{name: "no list", text: "http.allow = 3", says: "line 1: http.allow: takes a list of strings"},
		{name: "no list of tables", text: "ipc.deny = 3", says: "line 1: ipc.deny: takes a list of tables"},
		{name: "neither true nor false", text: "ingest.proof = 1", says: "line 1: ingest.proof: takes true or false"},
		{name: "smaller lines", text: "limits.line_bytes = 16383", says: "line 1: limits.line_bytes: 16383 must be from 16384 to 2097152: it can raise the limit, but not lower it"},
		{name: "largest lines", text: "limits.line_bytes = 2097152", want: func(c *config.Config) { c.Limits.LineBytes = 2097152 }},
		{name: "lines that the journal has no room for", text: "limits.line_bytes = 2097153", says: "must be from 16384 to 2097152"},
		{name: "huge lines", text: "limits.line_bytes = 9223372036854775807", says: "must be from 16384 to 2097152"},
		{name: "relative directory", text: "state_dir = 'x'", says: `line 1: state_dir: "x" must be an absolute path`},
		{name: "relative sealing key", text: "crypto.identity = '~/.ssh/id'", says: `line 1: crypto.identity: "~/.ssh/id" must be an absolute path`},
		{name: "agent's socket", text: "crypto.agentsocket = '/s'", says: "no setting has this name"},
		{name: "no duration", text: "idle_timeout = 'soon'", says: `"soon" is not a duration such as 10m`},
		{name: "negative duration", text: "idle_timeout = '-1s'", says: `"-1s" is not a duration`},
		{name: "no format", text: "log.format = 'xml'", says: "must be auto, console or json"},
		{name: "no level", text: "log.level = 'loud'", says: `line 1: log.level: "loud" must be debug, info, warn or error`},
		{name: "level between levels", text: "\n[log]\nlevel = 'info+1'", says: "line 3: log.level: INFO+1 must be debug, info, warn or error"},

		{name: "upstream", text: "[upstream.open-ai]\nurl = 'https://api.example.com/v1'\nheader = 'Authorization: Bearer'\nfrom = 'vault/openai'\nallow = ['POST /v1/…', 'GET /v1/models']\nenv = 'OPENAI_BASE_URL'\nintercept = true", want: func(c *config.Config) {
			c.Upstream = map[string]config.Upstream{"open-ai": {
				URL: "https://api.example.com/v1", Header: "Authorization: Bearer", From: "vault/openai",
				Allow: []string{"POST /v1/…", "GET /v1/models"}, Env: "OPENAI_BASE_URL", Intercept: true,
			}}
		}},
		{name: "upstream with headers", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = ['GET /']\nheaders = ['default', 'X-Team']", want: func(c *config.Config) {
			c.Upstream = map[string]config.Upstream{"a": {URL: "http://127.0.0.1:9", Header: "x-api-key", From: "vault/a", Allow: []string{"GET /"}, Headers: []string{"default", "X-Team"}}}
		}},
		{name: "upstream with a header that overrides", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = ['GET /']\nheaders = ['X_HTTP_Method_Override']", says: "line 6: upstream.a.headers: \"X_HTTP_Method_Override\" cannot be allowed"},
		{name: "upstream with an unknown key", text: "\n[upstream.a]\nurll = 'x'", says: "line 3: upstream.a.urll: no setting has this name: there are upstream.<name>.allow, "},
		{name: "upstream that is no table", text: "upstream.a = 'x'", says: "line 1: upstream.a: "},
		{name: "upstream in the clear", text: "[upstream.a]\nurl = 'http://api.example.com'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = ['GET /']", says: "line 2: upstream.a.url: \"http://api.example.com\" must be https:"},
		{name: "upstream with a user", text: "[upstream.a]\nurl = 'https://u:p@api.example.com'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = ['GET /']", says: "line 2: upstream.a.url: "},
		{name: "upstream without its vault", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nfrom = 'openai'\nallow = ['GET /']", says: "line 4: upstream.a.from: \"openai\" must be the key of a sealed value"},
		{name: "upstream without from", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nallow=['GET /']", says: "line 1: upstream.a: must have url, header, from and allow"},
		{name: "upstream that takes nothing", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = []", says: "line 5: upstream.a.allow: lists no requests"},
		{name: "upstream with an odd rule", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = ['POST /v1/../x']", says: "line 5: upstream.a.allow: \"POST /v1/../x\" must have a path"},
		{name: "upstream that reflects", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = ['TRACE /']", says: "TRACE cannot be allowed"},
		{name: "upstream with the host as its header", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='Host'\nfrom = 'vault/a'\nallow = ['GET /']", says: "line 3: upstream.a.header: "},
		{name: "upstream with a variable of the kernel's", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = ['GET /']\nenv = 'HTTP_PROXY'", says: "line 6: upstream.a.env: "},
		{name: "upstream on loopback intercepted", text: "[upstream.a]\nurl = 'http://127.0.0.1:9'\nheader='x-api-key'\nfrom = 'vault/a'\nallow = ['GET /']\nintercept = true", says: "line 6: upstream.a.intercept: "},
		{name: "upstream named oddly", text: "[upstream.A]\nurl = 'http://127.0.0.1:9'", says: "line 1: upstream.A: the name \"A\" must have only lower-case letters"},
		{name: "bounds of the network", text: "[net]\nconnections_each = 0", says: "line 2: net.connections_each: 0 must be at least 1"},

		{name: "duration without a unit", text: "idle_timeout = 60", says: "line 1: idle_timeout: takes a string"},
		{name: "level by number", text: "[log]\nlevel = 4", says: "line 2: log.level: takes a string"},
		{name: "number in quotes", text: "limits = { line_bytes = '32768' }", says: "takes an integer"},
		{name: "other case", text: "state_dir = '/a'\nState_Dir = '/b'", says: "line 2: State_Dir: no setting has this name"},
		{name: "table in other case", text: "[LOG]\nlevel = 'warn'", says: "line 1: LOG: no setting has this name"},
		{name: "dotted name in quotes", text: `"log.level" = 'warn'`, says: "no setting has this name"},
		{name: "table twice over", text: "[[log]]\nlevel = 'warn'", says: "line 1"},
		{name: "table for a setting", text: "idle_timeout = {}", says: "line 1"},
		{name: "list for a setting", text: "idle_timeout = ['1m']", says: "line 1"},
		{name: "setting for a table", text: "log = 'warn'", says: "line 1: log: takes a table"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, want := defaults(), defaults()
			err := got.Parse([]byte(tt.text))
			if tt.want == nil {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %v, want one that says %q", err, tt.says)
				}
			} else if err != nil {
				t.Errorf("error %v", err)
			} else {
				tt.want(&want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	testkit.Must(t, os.WriteFile(file, []byte("runtime_dir = '/file/r'\nstate_dir = '/file/s'\n"), 0o600))

	c := config.Default(env("PWOS_RUNTIME_DIR", "/env/r"), 7, "/home/me")
	testkit.Must(t, c.Load(file, true, env("PWOS_RUNTIME_DIR", "/env/r")))
	if c.RuntimeDir != "/env/r" || c.StateDir != "/file/s" {
		t.Errorf("got %s and %s, want the environment's runtime and the file's state directory", c.RuntimeDir, c.StateDir)
	}

	missing := filepath.Join(t.TempDir(), "none")
	if err := c.Load(missing, false, env()); err != nil {
		t.Errorf("a missing file at the default path: %v", err)
	}
	if err := c.Load(missing, true, env()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file that was named: %v, want that it does not exist", err)
	}
	testkit.Must(t, os.WriteFile(file, []byte("nonsense = 1"), 0o600))
	if err := c.Load(file, true, env()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v, want one that names %s", err, file)
	}
	testkit.Must(t, os.WriteFile(file, []byte("# fine\nlimits.line_bytes = 20000"), 0o600))
	c.RuntimeDir = "not/the/file's/fault"
	if err := c.Load(file, true, env()); err != nil {
		t.Errorf("the error names the file for a setting that is not from the file: %v", err)
	}
	var fault *config.Error
	if err := c.Check(); !errors.As(err, &fault) || fault.Key != "runtime_dir" || fault.File != "" {
		t.Errorf("error %v, want one about runtime_dir and no file", err)
	}
}

// TestExample checks that the example file has the defaults.
func TestExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../contrib/config.toml")
	testkit.Must(t, err)
	got := config.Config{RuntimeDir: defaults().RuntimeDir, StateDir: defaults().StateDir} // so that a setting that the file lacks is visible
	testkit.Must(t, got.Parse(text))
	if diff := cmp.Diff(defaults(), got); diff != "" {
		t.Errorf("contrib/config.toml is not the defaults (-want +got):\n%s", diff)
	}
}

func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"", "idle_timeout = '1m'", "[limits]\nline_bytes = 20000", "log = {level='info'}", "a.b.c = [1, {x=2}]", "x = 'unended", "\xff",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := defaults()
		if err := c.Parse(text); err != nil {
			if diff := cmp.Diff(defaults(), c); diff != "" {
				t.Errorf("refused settings took effect: %s", diff)
			}
			return
		}
		if err := c.Check(); err != nil {
			t.Errorf("Check refuses settings that Parse has accepted: %v", err)
		}
	})
}

func TestSet(t *testing.T) {
	t.Parallel()
	tests := []struct{ key, value, says string }{
		{key: "state_dir", value: "/a \"b\"\n\u001b/\u00e9"},
		{key: "log.level", value: "warn"},
		{key: "log.level", value: "loud", says: "loud"},
		{key: "log.level", says: "level"},
		{key: "runtime_dir", says: `runtime_dir: "" must be an absolute path`},
		{key: "log.colour", value: "red", says: "log.colour: no setting has this name"},
	}
	for _, tt := range tests {
		c := defaults()
		err := c.Set(tt.key, tt.value)
		if tt.says != "" {
			var fault *config.Error
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), tt.says) || fault.Line != 0 {
				t.Errorf("%s = %q: error %v, want one that says %q", tt.key, tt.value, err, tt.says)
			}
		} else if err != nil {
			t.Errorf("%s = %q: error %v", tt.key, tt.value, err)
		}
		if tt.key == "state_dir" && c.StateDir != tt.value {
			t.Errorf("got %q, want %q", c.StateDir, tt.value)
		}
	}
}
