package execs_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/execs"
	"github.com/promptware-os/pwos/host"
)

// TestSecrets: what looks secret in arguments is not kept, and all else is, as it is.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-Value"
	for _, c := range []struct{ argv, want string }{
		{"curl|--token=" + secret, "curl|--token=[redacted]"},
		{"curl|--token|" + secret + "|x", "curl|--token|[redacted]|x"},
		{"x|--api-key|" + secret, "x|--api-key|[redacted]"},
		{"x|--apiKey=" + secret + "|y", "x|--apiKey=[redacted]|y"},
		{"x|--password|--next", "x|--password|--next"},
		{"docker|login --password-stdin|registry", "docker|login --password-stdin|registry"},
		{"x|--token-file|/path", "x|--token-file|/path"},
		{"x|--max-tokens=5|--author=Me|--sort-key=2|--key|k", "x|--max-tokens=5|--author=Me|--sort-key=2|--key|k"},
		{"env|GITHUB_TOKEN=" + secret + "|PGPASSWORD=" + secret + "|AWS_SECRET_ACCESS_KEY=" + secret + "|PATH=/bin|true", "env|GITHUB_TOKEN=[redacted]|PGPASSWORD=[redacted]|AWS_SECRET_ACCESS_KEY=[redacted]|PATH=/bin|true"},
		{"git|clone|https://user:" + secret + "@host/x.git", "git|clone|https://[redacted]@host/x.git"},
		{"git|clone|https://" + secret + "@host/x.git", "git|clone|https://[redacted]@host/x.git"},
		{"git|clone|ssh://git@host/x.git|git@host:x", "git|clone|ssh://git@host/x.git|git@host:x"},
		{"curl https://host/a?b=c&access_token=" + secret + "&d=e", "curl https://host/a?b=c&access_token=[redacted]&d=e"},
		{"curl|-H|Authorization: Bearer " + secret + "|url", "curl|-H|Authorization: [redacted]|url"},
		{"curl|-HX-Api-Key: " + secret, "curl|-HX-Api-Key: [redacted]"},
		{"curl|-u|me:" + secret, "curl|-u|me:[redacted]"},
		{"docker|run|-u|1000:1000|i", "docker|run|-u|1000:1000|i"},
		{`curl|-d|{"password": "` + secret + `", "name": "x"}`, `curl|-d|{"password": "[redacted]", "name": "x"}`},
		{"git|commit|-m|auth: a subject", "git|commit|-m|auth: a subject"},
		{"sh|-c|curl -H 'Authorization: Bearer " + secret + "' -u a:" + secret + " --token " + secret + " x; TOKEN=" + secret + " run", "sh|-c|curl -H 'Authorization: [redacted]' -u a:[redacted] --token [redacted] x; TOKEN=[redacted] run"},
		{"mysql|-u|root|-p" + secret + "|db", "mysql|-u|root|-p[redacted]|db"},
		{"sshpass|-p|" + secret + "|ssh|-p|22", "sshpass|-p|[redacted]|ssh|-p|[redacted]"},
		{"mkdir|-p|dir", "mkdir|-p|dir"},
		{"x|ghp_0123456789abcdefghij|AKIAIOSFODNN7EXAMPLE|sk-ant-0123456789abcdefgh", "x|[redacted]|[redacted]|[redacted]"},
		{"x|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc", "x|[redacted]"},
		{"x|-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", "x|[redacted]\n"},
		{"go|test|./...|-run=TestX|-count=1", "go|test|./...|-run=TestX|-count=1"},
		{"x|é=ü|\xff--pass\xff=1|", "x|é=ü|\xff--pass\xff=1|"},
	} {
		var k execs.Keeper
		k.Add(7, &host.Exec{Path: "/x", Args: strings.Split(c.argv, "|")}, "")
		list, _ := k.Take(7)
		if got := strings.Join(list[0].Args, "|"); got != c.want {
			t.Errorf("%q is kept as %q, want %q", c.argv, got, c.want)
		}
	}
}

// BenchmarkAdd measures what is added to each exec.
func BenchmarkAdd(b *testing.B) {
	var k execs.Keeper
	e := &host.Exec{Path: "/usr/bin/node", Args: []string{"node", "/usr/lib/node_modules/npm/bin/npm-cli.js", "--prefix=/srv/project", "run", "build", "--", "--mode=production"}}
	for b.Loop() {
		k.Add(7, e, "")
		k.Take(7)
	}
}
