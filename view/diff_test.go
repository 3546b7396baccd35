package view_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/view"
)

func TestDiffWriter(t *testing.T) {
	t.Parallel()
	const diff = `diff --git a/x b/x
index 1..2 100644
--- a/x
+++ b/x
@@ -1,3 +1,3 @@ func f() {
 	same
--- a comment
++++ more
 last
\ No newline at end of file
@@ -9 +9,0 @@
-gone` + "\r\x1b[2J\xff\u202e" + `
--- a/y
+++ /dev/null
`
	const want = `<1>diff --git a/x b/x</>
<1>index 1..2 100644</>
<1>--- a/x</>
<1>+++ b/x</>
<36>@@ -1,3 +1,3 @@</> func f() {
 	same
<31>--- a comment</>
<32>++++ more</>
 last
\ No newline at end of file
<36>@@ -9 +9,0 @@</>
<31>-gone\u000d\u001b[2J` + "\uFFFD" + `\u202e</>
<1>--- a/y</>
<1>+++ /dev/null</>
<1>Binary files a and b differ</>`
	for size := 1; size < len(diff); size += 7 {
		var b strings.Builder
		w := &view.DiffWriter{To: &b, Paint: func(l view.Look, text string) string { return "<" + string(l) + ">" + text + "</>" }}
		for rest := diff + "Binary files a and b differ"; rest != ""; {
			part := rest[:min(size, len(rest))]
			rest = rest[len(part):]
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Fatalf("in parts of %d bytes:\n%s\nwant\n%s", size, b.String(), want)
		}
	}
}
