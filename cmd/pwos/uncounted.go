package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// uncounted is an agent whose host makes the requests to its model itself, with a login of its own.
type uncounted struct {
	PID   int64    `json:"pid"`
	Agent string   `json:"agent"`
	Host  string   `json:"host"`
	Login []string `json:"login"` // names of logins with which the kernel would count
}

// readUncounted returns those that run, if the caller may know them.
func readUncounted(ctx context.Context, c *client.Client) (list []uncounted) {
	running := "RUNNING"
	processes, err := cli.ListProcesses(ctx, c, &running)
	if err != nil {
		return nil
	}
	for _, p := range processes {
		host := hostIn(p.Command)
		if host == nil || slices.ContainsFunc(host.Upstreams, func(u preset.Upstream) bool { return slices.Contains(p.Upstreams, u.Name) }) {
			continue
		}
		one := uncounted{PID: p.PID, Agent: p.AgentID, Host: host.Name, Login: []string{}}
		for _, u := range host.Upstreams {
			if preset.LoginNamed(u.Name) != nil {
				one.Login = append(one.Login, u.Name)
			}
		}
		if len(one.Login) > 0 { // else nothing could be done
			list = append(list, one)
		}
	}
	return list
}

// hostIn returns the agent host that a command starts, by itself or by the script of setUp; nil: it starts none.
func hostIn(command []string) *preset.Host {
	if len(command) > 4 && command[0] == "/bin/sh" && command[1] == "-c" && command[3] == "pwos" {
		command = command[4:]
	}
	if len(command) == 0 {
		return nil
	}
	name := filepath.Base(command[0])
	for _, h := range preset.Hosts() {
		if h.Name == name || h.ACP != nil && h.ACP.Adapter != "" && h.ACP.Adapter == name {
			return h
		}
	}
	return nil
}

// addUncounted adds them to what pwos status prints.
func addUncounted(o *view.Object, t *view.Table, list []uncounted) error {
	if len(list) == 0 {
		return nil
	}
	for _, one := range list {
		var ways []string
		for _, name := range one.Login {
			ways = append(ways, quote.Line("pwos", "login", name))
		}
		t.Row("not counted", fmt.Sprintf("what pid %d (%s) uses of its model, since %s has a login of its own: %s, and start it again", one.PID, view.Escaped(one.Agent), one.Host, strings.Join(ways, " or ")))
	}
	text, err := schema.Marshal(&list)
	*o = o.Raw("not_counted", text)
	return err
}
