package secret_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema/secret"
)

// TestArguments: what looks secret in arguments is removed, and all else is left as it is. A second time changes nothing.
func TestArguments(t *testing.T) {
	t.Parallel()
	const hidden = "s3cr3t-Value"
	for _, c := range []struct{ argv, want string }{
		{"curl|--token=" + hidden, "curl|--token=[redacted]"},
		{"curl|--token|" + hidden + "|x", "curl|--token|[redacted]|x"},
		{"x|--api-key|" + hidden, "x|--api-key|[redacted]"},
		{"x|--apiKey=" + hidden + "|y", "x|--apiKey=[redacted]|y"},
		{"x|--password|--next", "x|--password|--next"},
		{"docker|login --password-stdin|registry", "docker|login --password-stdin|registry"},
		{"x|--token-file|/path", "x|--token-file|/path"},
		{"x|--max-tokens=5|--author=Me|--sort-key=2|--key|k", "x|--max-tokens=5|--author=Me|--sort-key=2|--key|k"},
		{"env|GITHUB_TOKEN=" + hidden + "|PGPASSWORD=" + hidden + "|AWS_SECRET_ACCESS_KEY=" + hidden + "|PATH=/bin|true", "env|GITHUB_TOKEN=[redacted]|PGPASSWORD=[redacted]|AWS_SECRET_ACCESS_KEY=[redacted]|PATH=/bin|true"},
		{"git|clone|https://user:" + hidden + "@host/x.git", "git|clone|https://[redacted]@host/x.git"},
		{"git|clone|https://" + hidden + "@host/x.git", "git|clone|https://[redacted]@host/x.git"},
		{"git|clone|ssh://git@host/x.git|git@host:x", "git|clone|ssh://git@host/x.git|git@host:x"},
		{"curl https://host/a?b=c&access_token=" + hidden + "&d=e", "curl https://host/a?b=c&access_token=[redacted]&d=e"},
		{"curl|-H|Authorization: Bearer " + hidden + "|url", "curl|-H|Authorization: [redacted]|url"},
		{"curl|-HX-Api-Key: " + hidden, "curl|-HX-Api-Key: [redacted]"},
		{"curl|-u|me:" + hidden, "curl|-u|me:[redacted]"},
		{"docker|run|-u|1000:1000|i", "docker|run|-u|1000:1000|i"},
		{`curl|-d|{"password": "` + hidden + `", "name": "x"}`, `curl|-d|{"password": "[redacted]", "name": "x"}`},
		{"git|commit|-m|auth: a subject", "git|commit|-m|auth: a subject"},
		{"sh|-c|curl -H 'Authorization: Bearer " + hidden + "' -u a:" + hidden + " --token " + hidden + " x; TOKEN=" + hidden + " run", "sh|-c|curl -H 'Authorization: [redacted]' -u a:[redacted] --token [redacted] x; TOKEN=[redacted] run"},
		{"mysql|-u|root|-p" + hidden + "|db", "mysql|-u|root|-p[redacted]|db"},
		{"sshpass|-p|" + hidden + "|ssh|-p|22", "sshpass|-p|[redacted]|ssh|-p|[redacted]"},
		{"mkdir|-p|dir", "mkdir|-p|dir"},
		{"x|ghp_0123456789abcdefghij|AKIAIOSFODNN7EXAMPLE|sk-ant-0123456789abcdefgh", "x|[redacted]|[redacted]|[redacted]"},
		{"x|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc", "x|[redacted]"},
		{"x|-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", "x|[redacted]\n"},
		{"go|test|./...|-run=TestX|-count=1", "go|test|./...|-run=TestX|-count=1"},
		{"x|é=ü|\xff--pass\xff=1|", "x|é=ü|\xff--pass\xff=1|"},
	} {
		list, cut := secret.Arguments(strings.Split(c.argv, "|"), 1<<12)
		if got := strings.Join(list, "|"); got != c.want || cut {
			t.Errorf("%q is shown as %q, want %q", c.argv, got, c.want)
		}
		if again, _ := secret.Arguments(list, 1<<12); !slices.Equal(again, list) {
			t.Errorf("%q is shown as %q the second time", list, again)
		}
	}
}

// TestBounds: arguments are cut, but no secret is.
func TestBounds(t *testing.T) {
	t.Parallel()
	const token = "ghp_0123456789abcdefghij"
	const all = "x|é [redacted] é|https://[redacted]@host/|[redacted]"
	for most := range 200 {
		list, cut := secret.Arguments([]string{"x", "é " + token + " é", "https://user:" + token + "@host/", token}, most)
		size := 0
		for _, arg := range list {
			size += len(arg)
		}
		if text := strings.Join(list, "|"); size > most || strings.Contains(text, "ghp") || cut == (text == all) || !utf8.ValidString(text) {
			t.Errorf("at most %d: %q, cut: %v", most, text, cut)
		}
	}
}

// FuzzArguments: whatever arguments are, a second time changes nothing, since the journal is redacted again when it is read.
func FuzzArguments(f *testing.F) {
	for _, text := range []string{"curl|-u|a:b", "x|--token|y z=1 --token=2 'a: b'", "sh|-c|T_TOKEN=\"a b\" x https://u@h/ -u a:b --password 'c'", "mysql|-px"} {
		f.Add(text, 4096)
	}
	f.Fuzz(func(t *testing.T, text string, most int) {
		list, _ := secret.Arguments(strings.Split(text, "|"), most)
		if again, cut := secret.Arguments(list, most); !slices.Equal(again, list) || cut {
			t.Errorf("%q of %q is %q the second time", list, text, again)
		}
	})
}

// BenchmarkArguments measures what is added to each exec.
func BenchmarkArguments(b *testing.B) {
	args := []string{"node", "/usr/lib/node_modules/npm/bin/npm-cli.js", "--prefix=/srv/project", "run", "build", "--", "--mode=production"}
	for b.Loop() {
		secret.Arguments(args, 4096)
	}
}
