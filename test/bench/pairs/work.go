package main

import (
	"fmt"
	"strings"
)

// source is what the work is made from.
type source struct{ repository, npm string }

// work is one thing to do. Its texts are for a shell, in a directory of its own: $RUN is what runs a program inside.
type work struct {
	name, description string

	prepare string // once, with $REPOSITORY and $NPM
	before  string // before each round, with $ROUND
	program []string
	pipe    string // in place of program: with a shell around it
}

var works = []work{
	{name: "start", description: "start true", program: []string{"true"}},
	{name: "pipe", description: "1 GB through cat, in by a pipe and out by one", pipe: `head -c 1000000000 /dev/zero | $RUN cat | tail -c 1 >/dev/null`},
	{
		name: "clone", description: "git clone of the repository",
		prepare: `git clone -q --bare "$REPOSITORY" source`,
		before:  `rm -rf clone`,
		program: []string{"sh", "-c", `git clone -q "file://$PWD/source" clone`},
	},
	{
		name: "go", description: "go build of a server of one file that has changed",
		prepare: `printf 'module small\n\ngo 1.25\n' >go.mod`,
		before:  `printf 'package main\n\nimport "net/http"\n\nfunc main() { panic(http.ListenAndServe("127.0.0.1:%s", nil)) }\n' "$ROUND" >main.go`,
		program: []string{"sh", "-c", `GOCACHE=$PWD/cache GOTOOLCHAIN=local GOPROXY=off go build -o server .`},
	},
	{
		name: "npm", description: "npm ci of the project that -npm names, offline",
		prepare: `cp -R "$NPM"/. .`,
		before:  `rm -rf node_modules`,
		program: []string{"sh", "-c", `npm ci --offline --no-audit --no-fund --silent --cache "$PWD/npm-cache"`},
	},
}

func find(name string) (work, bool) {
	for _, w := range works {
		if w.name == name {
			return w, true
		}
	}
	return work{}, false
}

func workLines() string {
	var b strings.Builder
	for _, w := range works {
		fmt.Fprintf(&b, "  %-10s %s\n", w.name, w.description)
	}
	return b.String()
}
