package transparent_test

// differences are the situations for which the table in docs/agents.md has a row.
func differences() []situation {
	return []situation{
		{
			line: `sleep 100 & RUN /bin/kill -0 $! 2>/dev/null; echo $?; kill $!`, differs: "processes",
			how: `outside: 0\ninside:  1\n`,
		},
		{line: `RUN ps -A -o pid=,comm= | head -n 1`, differs: "processes", how: `outside: +1 .*\ninside:  +1 pwos-init\n`},
		{ // what it leaves in the background
			line:    `RUN sh -c 'flock lock sh -c "touch begun; exec sleep 1" >/dev/null 2>&1 & until [ -e begun ]; do sleep 0.02; done'; flock -n lock true; echo $?; flock lock true`,
			differs: "processes", how: `outside: 1\ninside:  0\n`,
		},
		{
			line: `RUN env | sort`, differs: "environment", how: `(outside: (HOME|LOGNAME|PWD|SHLVL|USER|XDG_RUNTIME_DIR|_|PWOS_CI_MARK)=.*\n)+` +
				`(inside:  (HOME|LOGNAME|USER|TMPDIR|PWOS_[A-Z_]+|NODE_USE_ENV_PROXY|(?i:all|http|https|no)_(?i:proxy))=.*\n)+`,
		},
		{line: `RUN sh -c 'cd; pwd'`, differs: "files", how: `outside: .*/home\ninside:  .*/home/.local/state/pwos/homes/sh\n`},
		{line: `f=$(mktemp); echo x >$f; RUN cat $f; rm $f`, differs: "files", how: `outside: x\ninside:  cat: .*: No such file or directory\n`},
		{line: `RUN sh -c 'cat <&5' 5<<<five; echo $?`, differs: "descriptors", how: `outside: five\noutside: 0\ninside:  .*5.*\ninside:  [12]\n`},
		{line: `RUN /bin/echo gone >&-; echo $?`, differs: "descriptors", how: `outside: .*Bad file descriptor\noutside: 1\ninside:  0\n`},
		{
			line: `RUN bash -c 'ulimit -a'`, differs: "limits",
			how: `outside: max memory .* unlimited\noutside: file locks .* unlimited\ninside:  max memory .* \d{16}\ninside:  file locks .* \d{18,19}\n`,
		},
		{ // root without CAP_DAC_OVERRIDE
			line: `echo zero >in; chmod 0 in; RUN cat in 2>&1; rm -f in`, differs: "privileges", only: "root",
			how: `outside: zero\ninside:  cat: in: Permission denied\n`,
		},
		{ // of a user namespace
			line: `RUN stat -c '%U' /etc/hostname`, differs: "privileges", only: "user", how: `outside: root\ninside:  nobody\n`,
		},
		{
			line:  `python3 -um http.server 0 --bind 127.0.0.1 >log 2>&1 & until grep -qs port log; do sleep 0.02; done; RUN curl -so /dev/null http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' log)/; echo $?; kill $!; rm log`,
			needs: "python3 curl", differs: "network", how: `outside: 0\ninside:  7\n`,
		},
		{
			line: `git init -q; RUN git config alias.x '!true'; git config alias.x`, differs: "git",
			how: `outside: exit status 0\noutside: !true\noutside: .* .git/config .*\ninside:  exit status 1\ninside:  pwos: git: the agent changed alias.x, .*\ninside:  .* .git/config .*\n`,
		},
		{
			line: `RUN no-such-program; echo $?; RUN /etc/passwd; echo $?; RUN /etc; echo $?`, differs: "start",
			how: `(outside: bash: .*\n){3}(inside:  pwos: start .*\n){3}`,
		},
	}
}
