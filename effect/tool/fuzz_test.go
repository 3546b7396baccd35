package tool_test

import (
	"context"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/tool"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/uri"
)

// FuzzModule checks that a call of any module ends with an answer or a fault.
func FuzzModule(f *testing.F) {
	for _, seed := range [][]byte{
		echo(), spin(), recurse(), grow(), chance(), wait(), calendar(), printing("{}"),
		assemble(1, nil, vector([]byte{0x70, 1, 1, 2})),
	} {
		f.Add(seed)
	}
	modules, err := tool.NewModules(memory, 4)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = modules.Close() })
	space, err := uri.New("/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, bits []byte) {
		c := &tool.Caller{
			Space: space, Files: held(bits), Modules: modules,
			Limits: tool.Limits{Time: 20 * time.Millisecond, OutputBytes: 1 << 10},
		}
		r, err := c.Call(context.Background(), request("module", "{}"))
		if (err == nil) != (r != nil && len(r.Output) > 0) || r != nil && len(r.Output) > 1<<10 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

// held is a tool.Files that has the same module at every place.
type held []byte

func (h held) Read(uri.Place, int64) (rootfs.File, error) {
	return rootfs.File{Data: append([]byte("\x00asm"), h[min(4, len(h)):]...), Digest: rootfs.Digest(h)}, nil
}

// BenchmarkModule measures a call of a cached module.
func BenchmarkModule(b *testing.B) {
	modules, err := tool.NewModules(memory, 4)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = modules.Close() }()
	space, err := uri.New("/")
	if err != nil {
		b.Fatal(err)
	}
	c := &tool.Caller{Space: space, Files: held(echo()), Modules: modules}
	for b.Loop() {
		if _, err := c.Call(b.Context(), request("module", `{"a":1}`)); err != nil {
			b.Fatal(err)
		}
	}
}
