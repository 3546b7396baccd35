package transparent_test

import (
	"fmt"
	"strings"
)

// slowSituations take more than half a second.
func slowSituations() []situation {
	list := []situation{
		{line: `head -c 1000000000 /dev/zero | RUN cat | sha256sum; head -c 1000000000 /dev/urandom >big; a=$(sha256sum <big); b=$(RUN cat big | sha256sum); [ "$a" = "$b" ]; echo $?; rm big`},
		{
			line: `printf 'module x\n\ngo 1.21\n' >go.mod; printf 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(double(2)) }\n\nfunc double(n int) int { return 2 * n }\n' >a.go
printf 'package main\n\nimport "testing"\n\nfunc TestDouble(t *testing.T) {\n\tif double(2) != 4 {\n\t\tt.Error(1)\n\t}\n}\n\nfunc TestBad(t *testing.T) { t.Error("bad") }\n' >a_test.go
RUN go build -o app . && RUN ./app; RUN go vet .; RUN go test .; echo $?; RUN go run . | cat; RUN go test -count=1 -run Double -v .; RUN gofmt -l .; RUN go build ./none; echo $?`, needs: "go",
		},
		{line: `RUN cargo init -q --name app --vcs none && RUN cargo build -q --offline; RUN ./target/debug/app; RUN cargo test -q --offline; echo $?; echo 'fn' >src/main.rs; RUN cargo build -q --offline; echo $?; rm -rf target`, needs: "cargo"},
		{line: `RUN python3 -m venv v && RUN v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; RUN v/bin/pip list --disable-pip-version-check; echo $?; ls v; rm -rf v`, needs: "python3"},
		{line: `mkdir lib; echo '{"name":"lib","version":"1.0.0","main":"i.js"}' >lib/package.json; echo 'module.exports=7' >lib/i.js; echo '{"name":"top","version":"1.0.0","scripts":{"say":"node -e \"console.log(require(\\\"lib\\\"))\"","bad":"exit 4"},"dependencies":{"lib":"file:lib"}}' >package.json
RUN npm install --offline --no-audit --no-fund --no-update-notifier; RUN npm --no-update-notifier run -s say; RUN npm --no-update-notifier run -s bad; echo $?; RUN npm --no-update-notifier ls; RUN npm ci --offline --no-audit --no-fund --no-update-notifier; RUN npm --no-update-notifier pack ./lib 2>/dev/null; rm -f lib-1.0.0.tgz`, needs: "node npm"},
		{line: `mkdir lib; echo '{"name":"lib","version":"1.0.0"}' >lib/package.json; echo '{"name":"top","version":"1.0.0","dependencies":{"lib":"link:./lib"},"scripts":{"say":"echo said"}}' >package.json
RUN pnpm install --offline --reporter=append-only; RUN pnpm run say; RUN pnpm list; readlink node_modules/lib`, needs: "pnpm"},
		{line: `echo '<p id=x>before</p><script>x.textContent = 6 * 7</script>' >page.html; RUN chromium --headless --no-sandbox --disable-gpu --dump-dom "file://$PWD/page.html" 2>/dev/null; echo $?`, needs: "chromium"},
		{line: `RUN sh -c 'ulimit -t 1; while :; do :; done'; echo $?; RUN timeout 1 sleep 1000; echo $?`},
		{line: `seq 200 >list; RUN xargs -P 8 -n 1 sh -c 'seq "$0" | sort -rn | head -n 1 >"out.$0"' <list; cat out.* | sort -n | md5sum; rm out.*`},
		{line: `RUN make -j 8 -f - all <<'END' | sort | md5sum
all: $(shell seq 1 60 | sed 's/$$/.o/') ;
%.o:
	@echo 'int f$*(void) { return $*; }' >$*.c; gcc -c $*.c -o $@ && echo $@
END`, needs: "gcc make"},
		{line: `RUN git init -q r; cd r; for i in 1 2 3; do RUN sh -c "seq $i 2000 >f$i"; done; RUN git add .; RUN git commit -qm all; RUN git gc -q; RUN git clone -q . c; RUN git -C c log --format=%s; rm -rf .git c`},
	}
	for code := range 256 {
		list = append(list, situation{line: fmt.Sprintf(`RUN sh -c 'exit %d'`, code), slow: true})
	}
	for _, s := range strings.Fields("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS RTMIN RTMAX") {
		list = append(list, situation{line: fmt.Sprintf(`RUN bash -c 'kill -%s $$; echo here'; echo $?`, s)})
	}
	for i := range list {
		list[i].slow = true
	}
	return list
}
