package hosts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// mcpPlace returns a place with the servers of the protocol's own project.
func mcpPlace(t *testing.T) (p *place, modules string) {
	t.Helper()
	p = newPlace(t)
	for _, name := range []string{"everything", "filesystem", "memory"} {
		if _, err := os.Stat(filepath.Join(p.bin, "mcp-server-"+name)); err != nil {
			t.Skipf("npm has not installed the server: %v", err)
		}
	}
	modules, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(p.bin)))
	testkit.Must(t, err)
	return p, modules
}

// TestRealServers: each tool of servers of others is a syscall for which callers need a grant, also through another host.
func TestRealServers(t *testing.T) {
	t.Parallel()
	p, modules := mcpPlace(t)
	p.run("pwos", "spawn", "nobody", "--allow", "Memory.Get")
	file := p.Path("project/a.txt")
	testkit.Must(t, os.WriteFile(file, []byte("there"), 0o600))
	entity := `{"name":"a","entityType":"t","observations":["o"]}`
	for _, server := range []struct {
		name  string
		flags []string
		args  []string
		calls map[string]string // data by tool; other tools take none
		fails []string          // tools that need what this host does not have, or data that is not above
	}{
		{name: "everything", calls: map[string]string{
			"echo": `{"message":"hi"}`, "get-sum": `{"a":1,"b":2}`, "get-annotated-message": `{"messageType":"success","includeImage":true}`,
			"get-resource-links": `{"count":2}`, "get-resource-reference": `{"resourceType":"Text","resourceId":1}`, "get-structured-content": `{"location":"Chicago"}`,
			"trigger-long-running-operation": `{"duration":1,"steps":2}`, "gzip-file-as-resource": `{"name":"a","data":"data:text/plain,there"}`,
		}, fails: []string{"simulate-research-query"}},
		{name: "filesystem", flags: []string{"--dir", p.Path("project")}, args: []string{"."}, calls: map[string]string{
			"read_file": `{"path":"a.txt"}`, "read_text_file": `{"path":"a.txt"}`, "read_media_file": `{"path":"a.txt"}`, "read_multiple_files": `{"paths":["a.txt"]}`,
			"write_file": `{"path":"b.txt","content":"b"}`, "edit_file": `{"path":"a.txt","edits":[{"oldText":"there","newText":"here"}]}`,
			"create_directory": `{"path":"d"}`, "list_directory": `{"path":"."}`, "list_directory_with_sizes": `{"path":"."}`, "directory_tree": `{"path":"."}`,
			"move_file": `{"source":"c.txt","destination":"d.txt"}`, "search_files": `{"path":".","pattern":"*.txt"}`, "get_file_info": `{"path":"a.txt"}`,
		}},
		{name: "memory", calls: map[string]string{
			"create_entities": `{"entities":[` + entity + `]}`, "create_relations": `{"relations":[{"from":"a","to":"a","relationType":"r"}]}`,
			"add_observations":    `{"observations":[{"entityName":"a","contents":["p"]}]}`,
			"delete_observations": `{"deletions":[{"entityName":"a","observations":["p"]}]}`, "delete_relations": `{"relations":[{"from":"a","to":"a","relationType":"r"}]}`,
			"delete_entities": `{"entityNames":["b"]}`, "search_nodes": `{"query":"a"}`, "open_nodes": `{"names":["a"]}`,
		}},
	} {
		t.Run(server.name, func(t *testing.T) {
			args := append([]string{"mcp", "add", server.name, "--read", modules}, server.flags...)
			args = append(append(args, "--", filepath.Join(p.bin, "mcp-server-"+server.name)), server.args...)
			if server.name == "memory" {
				args = slices.Insert(args, 3, "--env", "MEMORY_FILE_PATH=/tmp/memory.json")
			}
			type added struct{ Tool, Change string }
			var tools []added
			for line := range strings.Lines(p.run("pwos", args...)) {
				var tool added
				testkit.Must(t, json.Unmarshal([]byte(line), &tool))
				tools = append(tools, tool)
			}
			if len(tools) < len(server.calls) {
				t.Fatalf("the server's tools are %v", tools)
			}
			testkit.Must(t, os.WriteFile(p.Path("project/c.txt"), nil, 0o600))
			bob := "bob-" + server.name
			pid := strings.Split(strings.Split(p.run("pwos", "spawn", bob, "--allow", "Call:mcp/"+server.name+"/*"), `"child_pid":`)[1], ",")[0]
			requests := []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			}
			for _, tool := range tools {
				path, data := "os/mcp/"+server.name+"/"+tool.Tool, server.calls[tool.Tool]
				if data == "" {
					data = "{}"
				}
				call := `{"syscall":"` + path + `","args":[` + data + `]}`
				out, err := p.try("pwos", "call", "Syscall.Call", "--pid", "1", "--data", call)
				if err == nil || !strings.Contains(out, "--add Call:mcp/"+server.name+"/"+tool.Tool) {
					t.Errorf("%s without a grant: %v, %s", tool.Tool, err, out)
				}
				out, err = p.try("pwos", "call", "Syscall.Call", "--pid", pid, "--data", call)
				if failed := slices.Contains(server.fails, tool.Tool); failed != (err != nil) || !failed && !strings.Contains(out, `"content":[`) {
					t.Errorf("%s: %v, %s", tool.Tool, err, out)
				}
				name := strings.NewReplacer("/", "_", ".", "_").Replace("mcp/" + server.name + "/" + tool.Tool)
				requests = append(requests, `{"jsonrpc":"2.0","id":"`+tool.Tool+`","method":"tools/call","params":{"name":"`+name+`","arguments":`+data+`,"_meta":{"progressToken":"`+tool.Tool+`"}}}`)
			}
			testkit.Must(t, os.WriteFile(p.Path("project/requests"), []byte(strings.Join(requests, "\n")+"\n"), 0o600))
			out := p.run("sh", "-c", "pwos mcp serve --as "+bob+" < requests")
			for _, tool := range tools {
				if !strings.Contains(out, `"id":"`+tool.Tool+`","result":{`) {
					t.Errorf("another host has no answer of %s", tool.Tool)
				}
			}
			if told := regexp.MustCompile(`"method":"notifications/progress".*"progressToken":"trigger-long-running-operation"`).MatchString(out); told != (server.name == "everything") {
				t.Errorf("another host gets progress of a call: %t, in %s", told, out)
			}
			log := p.run("pwos", "audit", "log", "--pid", pid, "--limit", "1000")
			for _, tool := range tools {
				if !strings.Contains(log, `"type":"mcp/`+server.name+`/`+tool.Tool+`"`) {
					t.Errorf("the journal has no call of %s", tool.Tool)
				}
			}
			if !strings.Contains(log, `"intent":`) {
				t.Errorf("the journal has no intents: %s", log)
			}
		})
	}
	p.run("pwos", "mcp", "rm", "memory")
	if out := p.run("pwos", "mcp", "ls"); strings.Contains(out, `"memory"`) || strings.Count(out, `"state":"running"`) != 2 {
		t.Errorf("listed: %s", out)
	}
}

// TestAddedServer runs the example of pwos mcp add in docs/doors.md literally.
func TestAddedServer(t *testing.T) {
	t.Parallel()
	p, _ := mcpPlace(t)
	page, err := os.ReadFile("../../docs/doors.md")
	testkit.Must(t, err)
	_, section, _ := strings.Cut(string(page), "## `pwos mcp add`\n")
	_, block, _ := strings.Cut(section, "```console\n")
	block, _, _ = strings.Cut(block, "```")
	p.configure("")
	testkit.Must(t, os.Mkdir(p.Path("home/project"), 0o700))
	testkit.Must(t, os.WriteFile(p.Path("home/project/a.txt"), []byte("there"), 0o600))
	var outs []string
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			t.Fatalf("%q is no command", line)
		}
		outs = append(outs, p.run("sh", "-c", command))
	}
	if len(outs) != 5 || !strings.Contains(outs[0], "read_text_file") || !strings.Contains(outs[2], "there") || outs[3] != "" {
		t.Errorf("the commands print %q", outs)
	}
}
