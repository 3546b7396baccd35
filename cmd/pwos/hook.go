package main

import "github.com/spf13/cobra"

func newHook(a *app) *cobra.Command {
	return group("hook", "have an agent host ask before it uses its own tools",
		`hook has an agent host ask the kernel before it uses one of its own tools, such as Bash
or Edit: whether the process that it is was granted Tool:HOST/TOOL. Each question is
recorded. A host that asks is trusted to ask and to obey: only "pwos run" enforces.`,
		`  pwos hook install claude --allow 'Tool:claude/Read,Tool:claude/Bash'
  pwos cap grant 7 --add Tool:claude/Edit`,
		newHookInstall(a), newHookUninstall(a), newHookRun(a))
}
