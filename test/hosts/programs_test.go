package hosts_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
