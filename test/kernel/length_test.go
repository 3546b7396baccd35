package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestNoLongerLine shows that a frame whose type, id and correlation fill a line is answered in a line that is no longer,
// whether the call succeeds, fails or is refused (MESSAGE 4.3.2 #1).
func TestNoLongerLine(t *testing.T) {
	t.Parallel()
	d := start(t)
	for socket, limit := range map[string]int{"kernel.sock": schema.MaxLine, "events.sock": schema.MaxEventLine} {
		c := d.wire(t, socket)
		ask := func(frame string) {
			t.Helper()
			c.send(frame + "\n")
			line, err := c.lines.Next()
			if err != nil {
				t.Fatalf("%s: %v", socket, err)
			}
			if len(line) > limit {
				t.Errorf("%s: a line of %d bytes: %.150s", socket, len(line), line)
			}
		}
		for _, head := range []string{
			`"kind":"query","type":"Syscall.Ping","data":{"payload":1}`, `"kind":"query","type":"Memory.Get","data":{"key":"none"}`,
			`"kind":"query","type":"Syscall.Ping","data":{}`, `"kind":"query","type":"No.Such","data":{}`, `"kind":"x","type":"No.Such","data":{}`,
			`"type":"query","name":"Syscall.Ping","payload":{"payload":1}`, `"type":"query","name":"No.Such","payload":{}`,
		} {
			frame := `{` + head + `,"metadata":{"timestamp":1,"id":"%s","correlation":"%s"}}`
			room := limit - len(frame) + len("%s%s")
			for _, id := range []int{1, 1000, room / 2, room - 1000, room - 1} {
				ask(fmt.Sprintf(frame, strings.Repeat("i", id), strings.Repeat("c", room-id)))
			}
		}
		for _, head := range []string{ // an error quotes them, at more length than they were sent
			`"kind":"query","type":"Memory.Get","data":{"key":"%.1024s"},"metadata":{"timestamp":1,"id":"%s"}`,
			`"kind":"query","type":"Capability.Check","data":{"pid":1,"syscall":"%s%.0s"},"metadata":{"timestamp":1,"id":"i"}`,
			`"kind":"command","type":"Syscall.Alloc","data":{"resource_id":"%s%.0s","amount":1},"metadata":{"timestamp":1,"id":"i"}`,
		} {
			ask(fmt.Sprintf(`{`+head+`}`, strings.Repeat("\x7f", limit-200), strings.Repeat("i", min(limit-4<<10-100, limit-1024-200))))
		}
		ask(`{"kind":"query","type":"L` + strings.Repeat("o", limit-100) + `.Name","data":1,"metadata":{"id":"i","timestamp":1}}`)
	}
}
