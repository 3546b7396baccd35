package cluster

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// FuzzMessage reads whatever a member of the bus may send, as a request, an answer, a lease, and a message of a stream. None ends the
// kernel, or takes more memory than a group of lines may.
func FuzzMessage(f *testing.F) {
	const checkpoint = `{"seq":1}`
	f.Add("", "", checkpoint, []byte(`{"from":"alpha","to":"beta","session":"s","number":1,"instance":"i","epoch":1}`))
	f.Add("s2", "", checkpoint, []byte("\x02\x04{\n"))
	f.Add("s2", "1/2", checkpoint, []byte("\xff\xff\xff\xff\x0f"))
	f.Add("", "2/2", checkpoint, []byte(`{"key":"a","epoch":1}`))
	f.Fuzz(func(t *testing.T, encoding, part, checkpoint string, data []byte) {
		_, _ = requests().DecodeUntrusted(data)
		_, _ = answers().DecodeUntrusted(data)
		_, _ = leaseEntries().DecodeUntrusted(data)
		header := nats.Header{encodingHeader: {encoding}, partHeader: {part}, checkpointHeader: {checkpoint}}
		var parts assembly
		for range 2 {
			if _, reason := parts.add(header, data); reason != "" {
				break
			}
		}
		if lines, reason := decoded(encoding, data); reason == "" && encoding != "" && len(lines) > maxGroup {
			t.Errorf("%d bytes of lines", len(lines))
		}
	})
}
