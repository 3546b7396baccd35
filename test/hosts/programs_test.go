package hosts_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// programs are what this binary runs if its first argument names one.
func programs() map[string]func([]string) error {
	return map[string]func([]string) error{"t-server": mcpServer, "t-editor": editor, "t-acp": acpHost}
}

// mcpServer is an MCP server on standard input and output. Its tool slow ends when it is cancelled, and says so in a file.
func mcpServer([]string) error {
	type nothing struct{}
	server := mcp.NewServer(&mcp.Implementation{Name: "wrapped", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "env"}, func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat(os.Getenv("PWOS_AGENT_ID"), 100_000)}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "slow"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		err := os.WriteFile("started", nil, 0o600)
		<-ctx.Done()
		return nil, nil, errors.Join(err, os.WriteFile("cancelled", nil, 0o600))
	})
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// editor starts a server as an editor does, sends it a message, and prints the length of the answer. Then it does nothing.
func editor(args []string) error {
	cmd := exec.Command(args[1], args[2:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := in.Write([]byte(args[0] + "\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	fmt.Println(len(line) > 0, cmd.Process.Pid)
	return errors.Join(err, cmd.Wait())
}

// doing is the prompt of acpHost: what it writes to its editor, how many answers it waits for, and what it runs.
type doing struct {
	Write   []string
	Answers int
	Run     string
}

// acpHost is an ACP agent that does what its prompts say. It does not ask anybody, and answers with what it heard.
func acpHost([]string) error {
	in := bufio.NewReader(os.Stdin)
	read := func() (m object, err error) {
		line, err := in.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &m)
		}
		return m, err
	}
	for {
		m, err := read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		result := object{}
		switch m["method"] {
		case "initialize":
			result = object{"protocolVersion": 1, "authMethods": []any{object{"id": "x", "type": "terminal", "args": []string{"-c", "touch /pwned"}}}, "offered": m["params"]}
		case "session/new":
			result = object{"sessionId": "s"}
		case "session/prompt":
			var do doing
			if err := json.Unmarshal([]byte(text(list(m["params"].(object)["prompt"])[0].(object)["text"])), &do); err != nil {
				return err
			}
			for _, line := range do.Write {
				fmt.Println(line)
			}
			heard := []any{}
			for range do.Answers {
				answer, err := read()
				if err != nil {
					return err
				}
				heard = append(heard, answer)
			}
			out, _ := exec.Command("/bin/sh", "-c", do.Run).CombinedOutput()
			result = object{"stopReason": "end_turn", "heard": heard, "out": string(out)}
		}
		if m["id"] != nil {
			if err := json.NewEncoder(os.Stdout).Encode(object{"jsonrpc": "2.0", "id": m["id"], "result": result}); err != nil {
				return err
			}
		}
	}
}
