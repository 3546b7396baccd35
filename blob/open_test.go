package blob_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// The error for a reference of another origin is that for a missing blob.
func TestOrigins(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir})
	blobs := map[string]schema.BlobPointer{}
	for _, origin := range []string{own, other, third} {
		blobs[origin] = put(t, s, origin, "of "+origin).Pointer
	}
	for _, asks := range []string{own, other, third, "none", ""} {
		nothing := blobs[other]
		nothing.Path = nothing.Path[:len(nothing.Path)-1]
		_, absent := s.Open(asks, nothing)
		want(t, absent, fault.BlobNotFound)
		for owner, p := range blobs {
			text, err := read(t, s, asks, p)
			if asks == owner {
				if err != nil || text != "of "+owner {
					t.Errorf("%q, %v", text, err)
				}
				continue
			}
			if err == nil || err.Error() != absent.Error() {
				t.Errorf("%s asks for a blob of %s: %q, %v; for a missing one: %v", asks, owner, text, err, absent)
			}
			_, err = s.Read(0, asks, p, 1000)
			want(t, err, fault.BlobNotFound)
		}
		// The directory cannot be read either.
		_, err := s.Open(asks, file(filepath.Dir(blobs[other].Path)))
		if err == nil || err.Error() != absent.Error() {
			t.Errorf("%s asks for a folder: %v", asks, err)
		}
	}
}

// References that are refused. None is opened, and no message repeats it.
func TestRefused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "blobs")
	s := open(t, blob.Options{Dir: dir, FileBytes: 10})
	write := func(name, text string) string {
		t.Helper()
		testkit.Must(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	secret := write(filepath.Join(base, "hush"), "secret")
	beside := dir + "-hush"
	testkit.Must(t, os.Mkdir(beside, 0o700))
	write(filepath.Join(beside, "x"), "secret")
	at := func(name string) string { return filepath.Join(dir, name) }
	real := write(at("real"), "text")
	testkit.Must(t, os.Symlink("real", at("hush-in")))
	testkit.Must(t, os.Symlink(secret, at("hush-out")))
	testkit.Must(t, os.Symlink("../hush", at("hush-up")))
	testkit.Must(t, os.Symlink("hush-loop", at("hush-loop")))
	testkit.Must(t, os.Symlink("none", at("hush-dangling")))
	testkit.Must(t, os.Link(secret, at("hush-hard")))
	testkit.Must(t, os.Mkdir(at("hush-dir"), 0o700))
	testkit.Must(t, syscall.Mkfifo(at("hush-pipe"), 0o600))
	write(at("hush-large"), strings.Repeat("a", 11))
	write(at("hush-closed"), "")
	write(at(".hush"), "hidden")
	write(at("hush-dir/x"), "nested")
	if text, err := read(t, s, own, file(real)); err != nil || text != "text" {
		t.Fatalf("%q, %v", text, err)
	}
	for name, tc := range map[string]struct {
		p  schema.BlobPointer
		id fault.ID
	}{
		"outside":       {file(secret), fault.BlobForbidden},
		"beside":        {file(filepath.Join(beside, "x")), fault.BlobForbidden},
		"directory":     {file(dir), fault.BlobForbidden},
		"root":          {file("/"), fault.BlobForbidden},
		"device":        {file("/dev/zero"), fault.BlobForbidden},
		"proc":          {file("/proc/self/environ"), fault.BlobForbidden},
		"up":            {file(dir + "/../hush"), fault.BlobInvalid},
		"dot":           {file(dir + "/./real"), fault.BlobInvalid},
		"slashes":       {file(dir + "//real"), fault.BlobInvalid},
		"slash":         {file(dir + "/real/"), fault.BlobInvalid},
		"nul":           {file(dir + "/real\x00hush"), fault.BlobInvalid},
		"relative":      {file("hush"), fault.BlobForbidden},
		"empty":         {file(""), fault.BlobInvalid},
		"authority":     {schema.BlobPointer{Scheme: "file", Path: real, Authority: "hush"}, fault.BlobInvalid},
		"query":         {schema.BlobPointer{Scheme: "file", Path: real, Query: "hush"}, fault.BlobInvalid},
		"fragment":      {schema.BlobPointer{Scheme: "file", Path: real, Fragment: "hush"}, fault.BlobInvalid},
		"https":         {schema.BlobPointer{Scheme: "https", Path: real, Authority: "hush"}, fault.BlobInvalid},
		"none":          {schema.BlobPointer{Path: real}, fault.BlobInvalid},
		"data":          {schema.BlobPointer{Scheme: "data", Path: ",hush"}, fault.BlobInvalid},
		"missing":       {file(at("hush-none")), fault.BlobNotFound},
		"hidden":        {file(at(".hush")), fault.BlobNotFound},
		"nested":        {file(at("hush-dir/x")), fault.BlobNotFound},
		"long":          {file(at(strings.Repeat("hush", 100))), fault.BlobNotFound},
		"below a file":  {file(at("real/x")), fault.BlobNotFound},
		"link in":       {file(at("hush-in")), fault.BlobForbidden},
		"link out":      {file(at("hush-out")), fault.BlobForbidden},
		"link up":       {file(at("hush-up")), fault.BlobForbidden},
		"loop":          {file(at("hush-loop")), fault.BlobForbidden},
		"dangling":      {file(at("hush-dangling")), fault.BlobNotFound},
		"hard link":     {file(at("hush-hard")), fault.BlobForbidden},
		"folder":        {file(at("hush-dir")), fault.BlobForbidden},
		"pipe":          {file(at("hush-pipe")), fault.BlobForbidden},
		"large":         {file(at("hush-large")), fault.BlobTooLarge},
		"other's name":  {file(at("o-" + strings.Repeat("0", 32))), fault.BlobNotFound},
		"other's below": {file(at("o-" + strings.Repeat("0", 32) + "/x")), fault.BlobNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{second(s.Open(own, tc.p)), second(s.OpenFor(0, own, tc.p))} {
				want(t, err, tc.id)
				if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "secret") {
					t.Errorf("repeats it: %v", err)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// A directory that is a link to another origin's is neither read nor written.
func TestFolderIsNoLink(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir})
	theirs := put(t, s, other, "theirs").Pointer
	mine := put(t, s, third, "mine").Pointer
	folder := filepath.Dir(mine.Path)
	testkit.Must(t, os.RemoveAll(folder))
	testkit.Must(t, os.Symlink(filepath.Base(filepath.Dir(theirs.Path)), folder))
	_, err := s.Open(third, file(filepath.Join(folder, filepath.Base(theirs.Path))))
	want(t, err, fault.BlobForbidden)
	_, err = s.Create(0, third)
	want(t, err, fault.BlobForbidden)
	if text, err := read(t, s, other, theirs); err != nil || text != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}

// A reader returns what a blob had when it was opened, even if a program appends to it.
func TestGrowing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir})
	name := filepath.Join(dir, "growing")
	testkit.Must(t, os.WriteFile(name, []byte("abc"), 0o600))
	r, err := s.Open(own, file(name))
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(name, []byte("abcdef"), 0o600))
	buf := make([]byte, 10)
	if n, _ := r.Read(buf); n != 3 || r.Size() != 3 {
		t.Errorf("%d bytes of %d", n, r.Size())
	}
	testkit.Must(t, r.Close())
}

// Read returns files and data, up to the limit of the caller.
func TestRead(t *testing.T) {
	t.Parallel()
	s := open(t, blob.Options{})
	p := put(t, s, own, "abcde").Pointer
	for _, tc := range []struct {
		p    schema.BlobPointer
		most int64
		want string
	}{
		{p, 5, "abcde"},
		{p, 4, ""},
		{schema.BlobPointer{Scheme: "data", Path: ",a%62c"}, 3, "abc"},
		{schema.BlobPointer{Scheme: "data", Path: ",a%62c"}, 2, ""},
		{schema.BlobPointer{Scheme: "https", Path: "/", Authority: "example.com"}, 5, ""},
	} {
		data, err := s.Read(0, own, tc.p, tc.most)
		if tc.want == "" && tc.p.Scheme == "https" {
			want(t, err, fault.BlobInvalid)
		} else if tc.want == "" {
			want(t, err, fault.BlobTooLarge)
		} else if err != nil || string(data) != tc.want {
			t.Errorf("%q, %v, want %q", data, err, tc.want)
		}
	}
}
