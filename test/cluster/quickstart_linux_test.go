package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// blocks returns the blocks of code of a section of a page, in a language.
func blocks(t *testing.T, page, section, language string) (all []string) {
	t.Helper()
	_, text, found := strings.Cut(testkit.ReadFile(t, page), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, block[1])
	}
	return all
}

// TestThreeNodes runs the commands of docs/cluster.md that make a bus of three hosts, byte for byte, in namespaces that have the names of
// these hosts, and a kernel that waits for a majority of them.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	if exec.Command("unshare", "--user", "--map-root-user", "--net", "--mount", "--uts", "ip", "link", "set", "lo", "up").Run() != nil {
		t.Skip("needs unshare and ip, and user namespaces")
	}
	commands, settings := blocks(t, "../../docs/cluster.md", "Quorum", "sh"), blocks(t, "../../docs/cluster.md", "Quorum", "toml")
	if len(commands) != 2 || len(settings) != 1 {
		t.Fatalf("the section has %d blocks of commands and %d of settings", len(commands), len(settings))
	}
	dir := testkit.Dir(t)
	testkit.WriteFile(t, filepath.Join(dir, "hosts"), "127.0.0.1 localhost\n127.0.0.11 host1\n127.0.0.12 host2\n127.0.0.13 host3\n")
	for i, block := range commands {
		testkit.WriteFile(t, filepath.Join(dir, fmt.Sprintf("step%d", i+1)), block)
	}
	for i := range 3 {
		config := filepath.Join(dir, fmt.Sprintf("host%d", i+1), ".config", "pwos")
		testkit.Must(t, os.MkdirAll(config, 0o700))
		testkit.WriteFile(t, filepath.Join(config, "config.toml"), settings[0])
	}
	programs := []string{filepath.Dir(testkit.Program(t, "pwos-bus")), filepath.Dir(testkit.Program(t, "pwos")), filepath.Dir(testkit.Program(t, "pwosd"))}
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "bash", "-euc", threeHosts)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + strings.Join(programs, ":") + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(string(out)))
	}
	_, result, _ := strings.Cut(string(out), "== nodes\n")
	for i := range 3 {
		if line := fmt.Sprintf(`{"node":"host%d",`, i+1); strings.Count(result, line) != 1 {
			t.Errorf("no line %s:\n%s", line, result)
		}
	}
	if strings.Count(result, `"state":"current"`) != 3 || !strings.Contains(result, `"acknowledge":"quorum"`) || !strings.Contains(result, "== value\n1\n") {
		t.Errorf("the bus does not work:\n%s", result)
	}
}

// threeHosts is what a person does between the commands of the page: moves lines to the members files, and uses the kernel.
const threeHosts = `
ip link set lo up
mount --bind hosts /etc/hosts
at() {
	host=$1; shift
	HOME=$PWD/$host PWOS_RUNTIME_DIR=$PWD/$host/r PWOS_STATE_DIR=$PWD/$host/s unshare --uts sh -euc 'hostname $0; cd ~/.config/pwos; "$@"' $host "$@"
}
for h in host1 host2 host3; do at $h sh -eu $PWD/step1; done >members
at host1 pwos cluster key >>members
for h in host1 host2 host3; do cp members $h/.config/pwos/members; done
for h in host1 host2 host3; do at $h bash -eu $PWD/step2 >$h.out 2>&1; done
at host1 pwos --timeout 2m mem set one 1
end=$((SECONDS + 120))
until at host1 pwos cluster nodes >nodes 2>&1 && (($(wc -l <nodes) == 3)) || ((SECONDS > end)); do sleep 0.2; done
echo '== nodes'; cat nodes
at host1 pwos cluster status
echo '== value'; at host1 pwos mem get one
at host1 pwos shutdown
`
