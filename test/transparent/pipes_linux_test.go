package transparent_test

// pipeSituations are what a shell does with a program's descriptors, signals and status.
func pipeSituations() []situation {
	const in = `printf '1\n2\n3\n' >in; `
	return []situation{
		{line: `seq 100000 | RUN cat | tail -n 1`},
		{line: `yes | RUN head -n 1; echo ${PIPESTATUS[*]}`},
		{line: `echo "<$(RUN printf 'a\nb\n\n')>"`},
		{line: `seq 6 | xargs -n 2 RUN echo`},
		{line: `seq 8 | xargs -P 8 -n 1 RUN factor | sort`}, // the first starts with a home, at the same time
		{line: `printf '1\n2\n' | xargs -P 2 -n 1 RUN sh -c 'exit $0'; echo $?`},
		{line: `printf '1\n2\n' | xargs -n 1 RUN sh -c 'kill -TERM $$' 2>&1 | sed 's/.*: //'; echo ${PIPESTATUS[*]}`},
		{line: `RUN sh -c 'echo err >&2' 2>&1 >/dev/null | cat`},
		{line: in + `RUN tr 1 x <in >out; cat out; echo first >log; RUN echo second >>log; cat log`},
		{line: `RUN cp 2>&1; printf '#!/bin/sh\necho $0\n' >x; chmod +x x; RUN ./x; mkdir d; cd d; RUN ../x`},
		{line: `SHELL=/bin/x RUN sh -c 'echo $SHELL'; export SHELL=/bin/y; RUN sh -c 'echo $SHELL'`},
		{
			line:  `RUN python3 -c 'import socket; a=socket.socket(socket.AF_UNIX); a.bind("s"); a.close(); socket.socket(socket.AF_UNIX).connect("s")' 2>&1 | tail -n 1`,
			needs: "python3",
		},
		{line: `(read a; RUN head -n 1; echo rest) <<<$'1\n2\n3'`},
		{line: in + `exec 5<in; RUN cat <&5; echo $?`},
		{line: `RUN cat </dev/null; RUN sh -c 'echo x' >/dev/null; echo $?`},
		{line: `echo x | RUN tee /dev/full >/dev/null 2>&1; echo $?; RUN /bin/echo x >/dev/full 2>&1; echo $?`},
		{line: `mkfifo f; cat f & RUN echo through >f; wait`},
		{line: `RUN sh -c 'exec >&-; exec sleep 0.2' | cat; echo ended`},
		{line: `RUN head -c 10 /dev/zero | od -c`},
		{line: `if RUN false; then echo yes; else echo no; fi`},
		{line: `for s in TERM HUP; do RUN sh -c "trap 'echo got $s; exit 5' $s; echo ready; while :; do sleep 0.02; done" >out & p=$!; until grep -qs ready out; do sleep 0.02; done; kill -$s $p; wait $p; echo $?; cat out; rm out; done`},
		{line: `RUN sh -c 'trap "" TERM; echo ready; sleep 0.3; echo unmoved' >out & p=$!; until grep -qs ready out; do sleep 0.02; done; kill -TERM $p; wait $p; echo $?; cat out`},
		{line: `RUN sh -c 'echo ready; exec sleep 1000' >out & p=$!; until grep -qs ready out; do sleep 0.05; done; kill -TERM $p; wait $p 2>/dev/null; cat out`},
		{line: `printf 'all:\n\t@RUN echo made\n\t@RUN sh -c "exit 3"\n' >Makefile; make --no-print-directory 2>&1 | sed 's/^make: //'; rm Makefile`},
		{line: `for i in 1 2; do RUN sh -c 'kill -INT $$'; echo $i $?; done`},
		{line: `set -o pipefail; echo x | RUN sh -c 'cat; exit 9' | cat; echo $?`},
		{
			line:  `python3 -c 'import socket,subprocess; a,b=socket.socketpair(); a.send(b"ping"); a.shutdown(1); print(subprocess.run("RUN cat".split(),stdin=b,stdout=b).returncode, a.recv(9))'`,
			needs: "python3",
		},
		{line: in + `umask 027; RUN sh -c 'umask; echo x >made; mkdir d; install -m 4 in copy'; stat -c '%a %U %n' made d copy`},
		{
			line:  `git init -q; RUN sh -c 'echo w >w; mktemp >/dev/null; echo x >~/x; python3 -c "import tempfile; tempfile.mkdtemp()"; vim -u NONE -es +q! w; git add -A; git status --porcelain --ignored'`,
			needs: "python3 vim",
		},
		{line: `umask 0; RUN sh -c 'umask; echo x >made; mkdir d'; stat -c '%a %n' made d; umask`},
		{line: in + `mkdir d; chmod g+s d; RUN sh -c 'mkdir d/e d/f; chmod g+s d/f; git init -q --bare --shared repo; install -m 2755 -d i'; stat -c '%a %n' d d/e i repo`},
	}
}
