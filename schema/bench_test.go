package schema_test

import (
	"testing"
	"time"

	"github.com/promptware-os/pwos/schema"
)

const pingLine = `{"kind":"query","type":"Syscall.Ping","data":{"payload":1},"metadata":{"id":"01234567","timestamp":1735000000000}}`

func BenchmarkDecode(b *testing.B) {
	line := []byte(pingLine)
	for b.Loop() {
		if _, err := schema.Decode(line, schema.OsMessage); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	m, _ := schema.Decode([]byte(pingLine), schema.OsMessage)
	for b.Loop() {
		if _, _, err := m.Request(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendReply(b *testing.B) {
	m, _ := schema.Decode([]byte(pingLine), schema.OsMessage)
	data := []byte(`{"payload":1}`)
	stamps := schema.NewStamper()
	now := time.Now()
	var buf []byte
	for b.Loop() {
		st := stamps.Next(now)
		buf = schema.AppendReply(buf[:0], &m, data, &st)
	}
}

func BenchmarkStamp(b *testing.B) {
	stamps := schema.NewStamper()
	now := time.Now()
	for b.Loop() {
		stamps.Next(now)
	}
}
