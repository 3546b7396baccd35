package blob_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestData(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ path, media, data string }{
		{",", "text/plain;charset=US-ASCII", ""},
		{",a,b%2Cc", "text/plain;charset=US-ASCII", "a,b,c"},
		{",a+b%20c", "text/plain;charset=US-ASCII", "a+b c"},
		{";base64,aGk=", "text/plain;charset=US-ASCII", "hi"},
		{";charset=utf-8,%C3%A9", "text/plain;charset=utf-8", "é"},
		{";charset=utf-8;base64,w6k%3D", "text/plain;charset=utf-8", "é"},
		{"image/png;base64,AP8=", "image/png", "\x00\xff"},
		{"text/plain;x=%22a%20b%22,c", `text/plain;x="a b"`, "c"},
		{"text/plain,;base64,aGk=", "text/plain", ";base64,aGk="},
	} {
		media, data, err := blob.Data(schema.BlobPointer{Scheme: "data", Path: tc.path}, 10+int64(len(tc.data)))
		if err != nil || media != tc.media || string(data) != tc.data {
			t.Errorf("%q: %q, %q, %v", tc.path, media, data, err)
		}
	}
}

func TestDataRefuses(t *testing.T) {
	t.Parallel()
	for _, p := range []schema.BlobPointer{
		{Scheme: "data", Path: "hush"},
		{Scheme: "data", Path: ""},
		{Scheme: "file", Path: ",hush"},
		{Scheme: "data", Path: ",hush", Authority: "a"},
		{Scheme: "data", Path: ",hush", Query: "a"},
		{Scheme: "data", Path: ",hush", Fragment: "a"},
		{Scheme: "data", Path: ",hush%"},
		{Scheme: "data", Path: ",hush%2"},
		{Scheme: "data", Path: ",hush%zz"},
		{Scheme: "data", Path: ";base64,hush!"},
		{Scheme: "data", Path: ";base64,aGk"},
		{Scheme: "data", Path: ";base64,aGl="},
		{Scheme: "data", Path: ";base64,aG\nk="},
		{Scheme: "data", Path: ";base64,aG%0Ak="},
		{Scheme: "data", Path: ";base64,-_--"},
		{Scheme: "data", Path: "hush,a"},
		{Scheme: "data", Path: "text/,a"},
		{Scheme: "data", Path: "text/plain;x,a"},
		{Scheme: "data", Path: ";BASE64,aGk="},
		{Scheme: "data", Path: "a/%zz,a"},
		{Scheme: "data", Path: "a/b;c=" + strings.Repeat("d", 300) + ",a"},
		{Scheme: "data", Path: "," + strings.Repeat("a", 101)},
		{Scheme: "data", Path: "," + strings.Repeat("%61", 101)},
		{Scheme: "data", Path: ";base64," + strings.Repeat("YWFh", 34)},
		{Scheme: "data", Path: "," + strings.Repeat("a", 1<<20)},
	} {
		_, data, err := blob.Data(p, 100)
		if err == nil {
			t.Errorf("%.40q gave %q", p.Path, data)
			continue
		}
		id := fault.BlobInvalid
		if _, data, _ := strings.Cut(p.Path, ","); len(data) > 100 {
			id = fault.BlobTooLarge
		}
		want(t, err, id, "Invalid input: ")
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("repeats it: %v", err)
		}
	}
}

// FuzzData shows that data is at most as long as allowed, and that its media type is accepted again.
func FuzzData(f *testing.F) {
	for _, path := range []string{",", "a/b;c=d;base64,aGk=", ";base64,", ",%41", "%2F/%2F,x", ";,", "a/b;c=\"d\",e"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		media, data, err := blob.Data(schema.BlobPointer{Scheme: "data", Path: path}, 64)
		if err != nil {
			want(t, err, fault.InvalidInput)
			return
		}
		if len(data) > 64 || media == "" {
			t.Fatalf("%d bytes of %q", len(data), media)
		}
	})
}

// FuzzReference shows that only the reference of a blob leads to it, and that other references lead nowhere. MINE, THEIRS
// and DIR stand for paths, which differ from process to process.
func FuzzReference(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "blobs")
	s := open(f, blob.Options{Dir: dir})
	mine, theirs := put(f, s, other, "mine").Pointer, put(f, s, third, "theirs").Pointer
	paths := strings.NewReplacer("MINE", mine.Path, "THEIRS", theirs.Path, "DIR", dir)
	for _, path := range []string{
		"MINE", "THEIRS", "MINE/", "/MINE", "MINE/../x", "DIR", "DIR/x", "DIR/o-00000000000000000000000000000000", "DIR/.", "/etc/passwd",
		"", ".", "\x00", "DIR\x00MINE",
	} {
		f.Add(path, "")
	}
	f.Fuzz(func(t *testing.T, path, fragment string) {
		p := schema.BlobPointer{Scheme: "file", Path: paths.Replace(path), Fragment: fragment}
		text, err := read(t, s, other, p)
		if (err == nil) != (p == mine) || err == nil && text != "mine" {
			t.Fatalf("%q: %q, %v", path, text, err)
		}
	})
}
