package transparent_test

import "fmt"

// situations are what the programs of a machine are used for, apart from git and what takes long.
func situations() []situation {
	list := []situation{
		// Pipes, files, descriptors.
		{line: `head -c 50000000 /dev/zero | RUN cat | sha256sum`},
		{line: `RUN cat /usr/bin/git | sha256sum`},
		{line: `seq 100000 | RUN head -n 3; echo "${PIPESTATUS[*]}"`},
		{line: `RUN yes | head -n 2; echo "${PIPESTATUS[*]}"`},
		{line: `RUN seq 100000 | RUN tail -n 2 | RUN wc -c`},
		{line: "RUN cat <<END\none\n\ttwo\nEND"},
		{line: `RUN cat <<<"one line" >out; RUN tee -a out copy <<<more`},
		{line: `RUN sh -c 'echo out; echo err >&2; exit 4'; echo $?`},
		{line: `RUN sh -c 'read -r x; echo "$? <$x>"' </dev/null; RUN readlink /proc/self/fd/0 </dev/null`},
		{line: `RUN dd if=/dev/zero of=/dev/full count=1 2>&1 | head -n 1; RUN sh -c 'echo x >/dev/full'; echo $?`},
		{line: `mkfifo f; echo through >f & RUN cat <f; wait; RUN sh -c 'mkfifo g; (echo inner >g &) ; cat g'`},
		{line: `RUN bash -c 'exec 5<>shared; echo a >&5; (echo b >&5); cat shared; cat <&5'`},
		{line: `RUN xargs -P 4 -n 1 sh -c 'echo "$0" >"out.$0"' <<<"$(seq 20)"; cat out.* | sort -n | tail -n 1`},
		{line: `seq 4 | xargs -P 2 -n 2 RUN sh -c 'exit $0'; echo $?`},
		{line: `RUN bash -c 'diff <(seq 5) <(seq 2 6)'; echo $?`},

		// Ends, signals, jobs.
		{line: `RUN sh -c 'echo $0 $#' first second; RUN sh -c 'echo $0'`},
		{line: `RUN sh -c 'for s in HUP INT QUIT TERM USR1 USR2 PIPE ALRM; do sh -c "trap \"echo got $s; exit 3\" $s; kill -$s \$\$; sleep 9"; echo $?; done'`},
		{line: `RUN bash -c 'set -m; sleep 100 & kill -STOP %1; until jobs | grep -q Stopped; do sleep 0.02; done; jobs | tr -s " "; kill -CONT %1; until jobs | grep -q Running; do sleep 0.02; done; kill %1; wait %1; echo $?'`},
		{line: `RUN bash -c 'sleep 0.1 & wait $!; echo $?; (exit 7) & wait $!; echo $?; set -m; sleep 0.1 & fg'`},
		{line: `RUN timeout 0.2 sleep 100; echo $?; RUN timeout -s KILL 0.2 sleep 100; echo $?`},
		{line: `RUN sh -c 'trap "" TERM; kill -TERM $$; echo unmoved'; RUN sh -c 'trap "echo leaving" EXIT; exit 9'; echo $?`},
		{line: `RUN sh -c 'trap "echo usr; exit 5" USR1; : >ready; while :; do sleep 0.02; done' & until [ -e ready ]; do sleep 0.02; done; kill -USR1 $!; wait $!; echo $?`},
		{line: `for s in INT QUIT; do RUN sh -c ': >up; sleep 0.5' & until [ -e up ]; do sleep 0.02; done; kill -$s $!; wait $!; echo $?; rm up; done`}, // ignored
		{line: `RUN nohup sh -c 'trap; echo kept' | cat; RUN sh -c 'setsid -w sh -c "echo own"; nice -n 5 nice; stdbuf -oL echo x; env -u TERM sh -c "echo t\$TERM"'; echo $?`},
		{line: `RUN sh -c 'ulimit -f 1; head -c 100000 /dev/zero >big'; echo $?; RUN bash -c 'ulimit -n 64; ulimit -n; ulimit -c 0; ulimit -u'`},
		{line: `printf 'all: a b c\na c:\n\t@echo $@ >$@\nb:\n\t@echo fails >&2; exit 3\n' >Makefile; RUN make -j4 -k 2>&1 | sort; echo "${PIPESTATUS[*]}"`},

		// Processes.
		{line: `RUN bash -c 'sleep 50 & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done; ps -o args= --ppid $$ | grep -c "^sleep 50"; pgrep -P $$ -x sleep | wc -l; pkill -P $$ -x sleep; wait; echo $?'`},
		{line: `RUN sh -c 'ls /proc | grep -c "^[0-9]"' | sed 's/[0-9][0-9]*/N/'; RUN sh -c 'test -e /proc/$$/status && test -d /proc/self/task/$$ && echo own'`},
		{line: `RUN python3 -c 'import os; p=os.fork(); p or os._exit(7); print(os.waitstatus_to_exitcode(os.waitpid(p,0)[1])); os.kill(os.getpid(),0)'`, needs: "python3"},
		{line: `RUN strace -f -e trace=none sh -c 'true; exit 6' 2>&1 | grep -c exited; RUN gdb --version >/dev/null 2>&1`, needs: "strace"},

		// What a program is told of its surroundings.
		{line: `RUN sh -c 'id; whoami; groups; umask'; (umask 027; RUN sh -c 'umask; mkdir d; >d/f')`},
		{line: `RUN sh -c 'pwd; cd ..; ls -d .'; cd /usr; RUN sh -c '/bin/pwd; ls -d bin'`},
		{line: `RUN locale; LC_ALL=C RUN sh -c 'locale charmap; printf "%s\n" ä€𝄞; echo "$LANG $TERM $SHELL $PATH" | tr ":" "\n" | head -n 4'`},
		{line: `TZ=Asia/Tokyo RUN sh -c 'date -d @0; date -u -d @1e9'; TZ=UTC+3 LC_ALL=POSIX RUN sh -c 'date -d @0 +%c; sort' <<<$'b\nA\na'`},
		{line: `RUN env | grep -Evi 'proxy|^(PWOS_|TMPDIR=|HOME=|USER=|LOGNAME=|XDG_RUNTIME_DIR=|PWD=|SHLVL=|_=)' | sort`},
		{line: `RUN sh -c 'uname -a; nproc; getconf PAGESIZE; hostname; arch; cat /etc/os-release /etc/hostname'`},
		{line: `RUN stat -c '%F %a %n' . / /etc /bin/sh /tmp /dev/null /dev/tty /dev/ptmx /dev/shm /proc /var/tmp; RUN stat -c '%F %a %u %g %h %s %n' . /etc/hostname`, differs: "privileges", only: "user", how: `.* 0 0 .*\n.* 65534 65534 .*\n`},
		{line: `RUN sh -c 'df --output=target . | tail -n 1 | wc -l; test -w . && echo writable; test -t 0 || echo no tty; tty'; echo $?`},
		{line: `RUN sh -c 'free >/dev/null; uptime >/dev/null; grep -c ^processor /proc/cpuinfo; sysctl -n kernel.ostype; test -r /proc/meminfo'; echo $?`},

		// Files.
		{line: `RUN sh -c 'mkdir -p a/b; echo x >a/b/f; ln -s b/f a/l; ln a/b/f a/h; chmod 640 a/b/f; cp -a a c; find c | sort; mv c d; rm -r a; stat -c "%a %h %n" d/h'`},
		{line: `RUN sh -c 'mkdir src; echo 1 >src/f; chmod 4755 src/f 2>/dev/null || chmod 755 src/f; chmod 755 src/f; tar -cf t.tar --mtime=@0 --sort=name src; mkdir o; tar -xpf t.tar -C o; tar -tvf t.tar'`},
		{line: `RUN sh -c 'mkdir in; seq 10 >in/a; ln -s a in/l; mkdir in/e; rsync -a --delete in/ out/; seq 11 >in/a; touch -d @0 in/a; rsync -ai in/ out/ | cut -c1-11; stat -c %Y out/a'`, needs: "rsync"},
		{line: `RUN sh -c 'seq 9 >f; sed -i s/5/five/ f; gzip -nk f; zcat f.gz | awk "{s+=length} END {print s}"; sort -rn f | head -n 2; split -l 4 f p.; touch -d @0 f; stat -c %Y f'`},
		{line: `RUN sh -c 'find /usr/share/zoneinfo/Europe -name "B*" -printf "%f %s %m\n" | sort; du -s --apparent-size -B1 /etc/hostname; ls -l --time-style=+ /etc/hostname | cut -c1-10'`},
		{line: `RUN perl -e 'open F, ">f"; print F "x" x 10; close F; truncate "f", 4; print -s "f", "\n"; rename "f", "g"; chmod 0604, "g"; print join(" ", glob("*")), "\n"; exit 12'; echo $?`, needs: "perl"},
		{line: `RUN flock lock sh -c 'flock -n lock true; echo $?; flock -n other echo free'; RUN sh -c 'exec 9>lock; flock 9; (flock -n 9 && echo shared)'`},
		{line: `RUN sh -c 'd=$(mktemp -d); echo x >$d/f; cat $d/f; rm -r $d; echo y >/dev/shm/pwos-transparent.$$; cat /dev/shm/pwos-transparent.$$; rm /dev/shm/pwos-transparent.$$'`},
		{line: `RUN sh -c 'echo x >ro; chmod 400 ro; cat ro; mkdir s; chmod 1777 s; chmod g+s s; mkdir s/t'`},
		{line: `RUN sh -c 'n=$(printf %0255d 0); >$n; >x$n; ls | wc -l; >"a b
c"; ls | cat -A'; echo $?`},
		{line: `RUN sqlite3 data.db 'create table t(a); insert into t values (1),(2); pragma journal_mode=wal; select sum(a) from t; select x;'; echo $?; rm -f data.db*`, needs: "sqlite3"},
		{line: `RUN python3 -c 'import mmap; f=open("sparse","w+b"); f.truncate(1<<32); m=mmap.mmap(f.fileno(),1<<32); m[-3:]=b"end"; m.flush(); print(m[-3:], len(m))'; stat -c %s sparse; rm sparse`, needs: "python3"},
		{line: "RUN python3 - <<'END'\nimport os, socket\nd = os.path.join(os.getcwd(), 'x' * 80, 'y' * 80)\nos.makedirs(d)\nos.chdir(d)\na, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)\na.bind('s'); a.listen(); b.connect('s'); b.send(b'hi'); print(a.accept()[0].recv(2), oct(os.stat('s').st_mode))\ntry: b.bind(d + '/s')\nexcept OSError as e: print(e)\nEND", needs: "python3"},
		{line: "RUN python3 - <<'END'\nimport socket, threading\nfor f, a in (socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1'):\n  s = socket.socket(f); s.bind((a, 0)); s.listen(); c = socket.create_connection(s.getsockname()[:2]); p = s.accept()[0]\n  c.sendall(b'x' * 9); print(p.recv(9), p.getpeername()[0])\nEND", needs: "python3"},
		{line: "RUN python3 - <<'END'\nimport multiprocessing as m, tempfile, os\nwith m.Pool(2) as p: print(p.map(abs, [-1, -2]))\nv = m.shared_memory if hasattr(m, 'shared_memory') else None\nfrom multiprocessing import shared_memory\ns = shared_memory.SharedMemory(create=True, size=9); s.buf[0] = 7; print(s.buf[0]); s.close(); s.unlink()\nwith tempfile.TemporaryDirectory() as d: print(os.path.isdir(d))\nEND", needs: "python3"},
		{line: `RUN bash -c '(sleep 0.3; echo x >new; sleep 0.2; rm new) & inotifywait -qm -e create,delete --format "%e %f" -t 2 . | head -n 2'`, needs: "inotifywait"},

		// Terminals, editors, tools.
		{line: `RUN script -qec 'tty | tr -d 0-9; stty size; exit 4' /dev/null </dev/null; echo $?`},
		{line: `RUN expect -c 'spawn -noecho sh -c "read -r line; echo got \$line; exit 6"; send "typed\r"; expect "got typed"; expect eof; exit [lindex [wait] 3]' </dev/null; echo $?`, needs: "expect"},
		{line: `RUN sh -c 'tmux -f /dev/null -L t new-session -d "echo \$TERM >m; mv m said"; until test -e said; do sleep 0.02; done; cat said' </dev/null`, needs: "tmux"},
		{line: `seq 5 >f; RUN vim -u NONE -es -c '%s/3/three/' -c wq f; echo $?; RUN vim -u NONE -es +'1put =getcwd()' +'2p' +q! f; cat f`, needs: "vim"},
		{line: `seq 500 | RUN less | tail -n 1; RUN sh -c 'less -F /etc/hostname; less none'; echo $?`, needs: "less"},
		{line: `RUN sh -c 'ssh-keygen -q -t ed25519 -N "" -C me -f key && ssh-keygen -y -f key | cut -d" " -f1,3; ssh-keygen -lf key.pub | cut -d" " -f1,3,4; stat -c "%a %n" key key.pub'`, needs: "ssh-keygen"},
		{line: `printf '#include <stdio.h>\nint main(void) { puts("compiled"); return 3; }\n' >a.c; RUN gcc -Wall -o app a.c && RUN ./app; echo $?; gcc -c none.c`, needs: "gcc"},
		{line: `RUN python3 -c 'import pty,os,sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(["sh","-c","test -t 0 && echo tty; exit 3"])))' </dev/null; echo $?`, needs: "python3"},
		{line: `RUN sh -c 'docker ps; echo $?; docker run --rm alpine true; echo $?; docker --version'`, needs: "docker"},
		{line: `RUN curl -sS http://127.0.0.1:1/; echo $?; RUN sh -c 'curl -sS file:///etc/hostname; openssl dgst -sha256 /etc/hostname; openssl rand -hex 4 | wc -c'`, needs: "curl openssl"},
		{line: `RUN node -e 'console.log(process.argv.length, process.stdin.isTTY, require("os").EOL.length); process.exitCode = 5'; echo $?; echo 'process.stdin.pipe(process.stdout)' >c.js; seq 9 | RUN node c.js`, needs: "node"},
		{line: "RUN bash <<'END'\nnode -e 'const s=require(\"http\").createServer((q,r)=>r.end(q.url+\"\\n\"));s.listen(0,\"localhost\",()=>require(\"fs\").writeFileSync(\"port\",\"\"+s.address().port))' &\nuntil [ -s port ]; do sleep 0.05; done\ncurl -sS \"http://localhost:$(cat port)/page\"; kill $!; wait $!; echo $?; rm port\nEND", needs: "node curl"},
	}
	// The others are among the slow ones.
	for _, code := range []int{0, 1, 127, 255} {
		list = append(list, situation{line: fmt.Sprintf(`RUN sh -c 'exit %d'`, code)})
	}
	for _, signal := range []string{"INT", "KILL", "SEGV", "TERM"} {
		list = append(list, situation{line: fmt.Sprintf(`RUN sh -c 'kill -%s $$'`, signal)})
	}
	return list
}
