package access_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// parseOne parses a text that admits one key and refuses no line.
func parseOne(t testing.TB, text string) *access.AuthorizedKey {
	t.Helper()
	keys := access.ParseAuthorizedKeys([]byte(text), time.UTC)
	if len(keys.Keys()) != 1 || len(keys.Refused()) != 0 {
		t.Fatalf("%d keys, refused %v", len(keys.Keys()), keys.Refused())
	}
	return keys.Keys()[0]
}

// TestKeysOptions: what each option grants, and which lines are an operator's.
func TestKeysOptions(t *testing.T) {
	t.Parallel()
	key := strings.TrimSpace(vector(t, "ed25519.pub"))
	utc := func(text string) time.Time { return must(time.Parse(time.RFC3339, text))(t) }
	nothing := &access.AgentGrant{Quotas: map[string]float64{}}
	for _, c := range []struct {
		line string
		want access.AuthorizedKey
	}{
		{key, access.AuthorizedKey{}},
		{"\t " + key + " \t", access.AuthorizedKey{}},
		{"no-touch-required " + key, access.AuthorizedKey{NoTouch: true}},
		{`expiry-time="20300102" ` + key, access.AuthorizedKey{Expires: utc("2030-01-02T00:00:00Z"), Agent: nothing}},
		{`expiry-time="203001020304" ` + key, access.AuthorizedKey{Expires: utc("2030-01-02T03:04:00Z"), Agent: nothing}},
		{`expiry-time="20300102030405Z" ` + key, access.AuthorizedKey{Expires: utc("2030-01-02T03:04:05Z"), Agent: nothing}},
		{
			`no-touch-required,expiry-time="20300102Z" ` + key,
			access.AuthorizedKey{NoTouch: true, Expires: utc("2030-01-02T00:00:00Z"), Agent: nothing},
		},
		{`allow="Memory.*,Syscall.SendMsg" ` + key, access.AuthorizedKey{
			Agent: &access.AgentGrant{Allow: []string{"Memory.*", "Syscall.SendMsg"}, Quotas: map[string]float64{}},
		}},
		{`allow="*" ` + key, access.AuthorizedKey{
			Agent: &access.AgentGrant{Allow: []string{"*"}, Quotas: map[string]float64{}},
		}},
		{`allow="SYS_SPAWN,Memory.Get,Memory.Get" ` + key, access.AuthorizedKey{
			Agent: &access.AgentGrant{Allow: []string{"Memory.Get", "SYS_SPAWN"}, Quotas: map[string]float64{}},
		}},
		{`agent="a \"very good\" \ one, yes" ` + key, access.AuthorizedKey{
			Agent: &access.AgentGrant{Name: `a "very good" \ one, yes`, Quotas: map[string]float64{}},
		}},
		{`quota="tokens=1000",quota="gpu=0.5",origin="https://my-os.local/" ` + key, access.AuthorizedKey{
			Agent: &access.AgentGrant{Origin: "https://my-os.local/", Quotas: map[string]float64{"tokens": 1000, "gpu": 0.5}},
		}},
	} {
		t.Run(c.line[:12], func(t *testing.T) {
			t.Parallel()
			got := parseOne(t, c.line)
			c.want.Key, c.want.Comment, c.want.Line = vectorKey(t, "ed25519"), "pwos test ed25519", 1
			if diff := cmp.Diff(&c.want, got, cmp.Comparer(func(a, b access.PublicKey) bool { return a == b })); diff != "" {
				t.Error(diff)
			}
			if again := parseOne(t, strings.TrimLeft(got.Options()+" "+key, " ")); again.Options() != got.Options() {
				t.Errorf("%s, formatted and parsed again, is %s", got.Options(), again.Options())
			}
		})
	}
}

// TestKeysRefused: a line with an error admits no key, gives its reason, and refuses its key on
// every other line.
func TestKeysRefused(t *testing.T) {
	t.Parallel()
	key := strings.TrimSpace(vector(t, "ed25519.pub"))
	fields := strings.Fields(key)
	for _, line := range []string{
		`command="ls" ` + key,
		`from="10.0.0.0/8" ` + key,
		`restrict ` + key,
		`no-pty ` + key,
		`verify-required ` + key,
		`cert-authority ` + key,
		`permitopen="a:1",allow="*" ` + key,
		`principals="x" ` + key,
		`Allow="*" ` + key,
		`no-touch-required="yes" ` + key,
		`allow ` + key,
		`allow= ` + key,
		`allow="" ` + key,
		`allow=* ` + key,
		`allow="Memory.*, Syscall.SendMsg" ` + key,
		`allow="memory.*" ` + key,
		`allow="Memory.*," ` + key,
		`allow="**" ` + key,
		`allow="Memory.*",allow="*" ` + key,
		`allow="Memory.*"agent="x" ` + key,
		`allow="Memory.*",,agent="x" ` + key,
		`,allow="Memory.*" ` + key,
		`allow="Memory.*", ` + key,
		`allow="Memory.* ` + key,
		`allow="Memory.*"" ` + key,
		`allow="Memory.*\" ` + key,
		`quota="tokens" ` + key,
		`quota="=1" ` + key,
		`quota="tokens=-1" ` + key,
		`quota="tokens=1e9" ` + key,
		`quota="tokens=NaN" ` + key,
		`quota="tokens=Inf" ` + key,
		`quota="tokens=0x10" ` + key,
		`quota="tokens=1_000" ` + key,
		`quota="tokens=" ` + key,
		`quota="tokens=1",quota="tokens=2" ` + key,
		`origin="my-os" ` + key,
		`origin="https://a b/" ` + key,
		`agent=" x" ` + key,
		"agent=\"x\xff\" " + key,
		`agent="` + strings.Repeat("x", 257) + `" ` + key,
		`expiry-time="tomorrow" ` + key,
		`expiry-time="2030010" ` + key,
		`expiry-time="20301301" ` + key,
		`expiry-time="20300132" ` + key,
		`expiry-time="2030010125" ` + key,
		`expiry-time="20300101Z0" ` + key,
		`expiry-time="-2030010" ` + key,
		`expiry-time="20300101",expiry-time="20310101" ` + key,
		key[:40] + "\x00" + key[40:],
		"\x00" + key,
		key + "\r" + key,
		key + "\x1b[2J",
		fields[1] + " " + fields[0],
		`ssh-rsa ` + fields[1],
		fields[0],
		fields[0] + " " + fields[1][:20],
		fields[0] + " " + fields[1] + "=",
		fields[0] + "\u00a0" + fields[1],
		"\ufeff" + key,
		`"` + key,
		key[:len(key)-len(fields[2])] + strings.Repeat("x", 17<<10),
	} {
		t.Run(fmt.Sprintf("%.40q", line), func(t *testing.T) {
			t.Parallel()
			keys := access.ParseAuthorizedKeys([]byte("# first\n"+line+"\n"), time.UTC)
			if len(keys.Keys()) != 0 || len(keys.Refused()) != 1 {
				t.Fatalf("%d keys admitted, refused %v", len(keys.Keys()), keys.Refused())
			}
			if r := keys.Refused()[0]; r.Line != 2 || r.Reason == "" || strings.ContainsAny(r.Reason, "\x00\x1b\r\n") {
				t.Errorf("refused with %+v", r)
			}
			// If the line has an agent, no other line admits its key.
			if !strings.Contains(line, fields[1]) || strings.Contains(line, fields[1]+"=") || strings.Contains(line, "\u00a0") {
				return
			}
			for _, text := range []string{line + "\n" + key, key + "\n" + line} {
				keys := access.ParseAuthorizedKeys([]byte(text), time.UTC)
				if _, err := keys.Lookup(vectorKey(t, "ed25519"), noon); err == nil || len(keys.Refused()) != 2 {
					t.Errorf("another line admits the key: %v", keys.Refused())
				}
			}
		})
	}
}

// TestKeysFile: comments, empty lines, line ends, and keys that are listed twice.
func TestKeysFile(t *testing.T) {
	t.Parallel()
	one, two := strings.TrimSpace(vector(t, "ed25519.pub")), strings.TrimSpace(vector(t, "ecdsa256.pub"))
	for _, c := range []struct {
		name, text    string
		keys, refused int
	}{
		{"empty", "", 0, 0},
		{"comments", "# a\n\n \t\n  # b\n", 0, 0},
		{"two keys", one + "\n" + two, 2, 0},
		{"CRLF", one + "\r\n# x\r\n\r\n" + two + "\r\n", 2, 0},
		{"the same twice", one + "\n" + one + "\n", 1, 1},
		{"the same in other words", `allow="A.*",agent="x" ` + one + "\n" + `agent="x",allow="A.*" ` + one, 1, 1},
		{"an operator and an agent", one + "\n" + `allow="Memory.*" ` + one + "\n" + two, 1, 2},
		{"an agent and an operator", `allow="Memory.*" ` + one + "\n" + one, 0, 2},
		{"two agents", `allow="Memory.*" ` + one + "\n" + `allow="*" ` + one, 0, 2},
		{"two expiries", `expiry-time="20300101" ` + one + "\n" + `expiry-time="20310101" ` + one, 0, 2},
		{"one bad of two", "nonsense\n" + one, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			keys := access.ParseAuthorizedKeys([]byte(c.text), time.UTC)
			if len(keys.Keys()) != c.keys || len(keys.Refused()) != c.refused {
				t.Errorf("%d keys, refused %v", len(keys.Keys()), keys.Refused())
			}
		})
	}
}

// TestExpiry: a key is valid through its last moment, in the time zone of the option.
func TestExpiry(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 2*60*60)
	line := func(when string) []byte { return []byte(`expiry-time="` + when + `" ` + vector(t, "ed25519.pub")) }
	for _, c := range []struct {
		when string
		last time.Time
	}{
		{"20300101120000", time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)},
		{"20300101120000Z", time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)},
	} {
		keys := access.ParseAuthorizedKeys(line(c.when), zone)
		must(keys.Lookup(vectorKey(t, "ed25519"), c.last))(t)
		_, err := keys.Lookup(vectorKey(t, "ed25519"), c.last.Add(time.Second))
		refused(t, err, fault.AuthExpired)
	}
}

// TestAgentsKey: a login with an agent's key returns its grant.
func TestAgentsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	w.keys = `agent="scribe",allow="Memory.*" ` + w.keys
	c := w.challenge(t)
	key := must(c.Verify(w.answer(t, c).Data))(t)
	if key.Agent == nil || key.Agent.Name != "scribe" || len(key.Agent.Allow) != 1 {
		t.Errorf("admitted as %+v", key)
	}
}
