package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestDecodeBlobPointer checks which pointers are valid, and their canonical form (MESSAGE D #10, MESSAGE 4.3.2).
func TestDecodeBlobPointer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, raw string
		want      schema.BlobPointer
		canonical string
	}{
		{"file", `{"scheme":"file","path":"/tmp/x"}`, schema.BlobPointer{Scheme: "file", Path: "/tmp/x"}, `{"scheme":"file","path":"/tmp/x"}`},
		{
			"order_and_space", " { \"path\" : \"/tmp/x\" ,\t\"scheme\":\"file\"\r} ",
			schema.BlobPointer{Scheme: "file", Path: "/tmp/x"},
			`{"scheme":"file","path":"/tmp/x"}`,
		},
		{
			"escapes", `{"sch\u0065me":"f\u0069le","path":"\/\u00e9\ud83d\ude00\""}`,
			schema.BlobPointer{Scheme: "file", Path: "/é\U0001f600\""},
			"{\"scheme\":\"file\",\"path\":\"/é\U0001f600\\\"\"}",
		},
		{"empty_members", `{"scheme":"file","path":"/x","authority":"","query":"","fragment":""}`, schema.BlobPointer{Scheme: "file", Path: "/x"}, `{"scheme":"file","path":"/x"}`},
		{"root", `{"scheme":"file","path":"/"}`, schema.BlobPointer{Scheme: "file", Path: "/"}, `{"scheme":"file","path":"/"}`},
		{"dots_in_names", `{"scheme":"file","path":"/a/..b/c..d/.e"}`, schema.BlobPointer{Scheme: "file", Path: "/a/..b/c..d/.e"}, `{"scheme":"file","path":"/a/..b/c..d/.e"}`},
		{
			"https", `{"fragment":"top","query":"a=1&b=%20","authority":"example.org:8443","path":"/b/../c","scheme":"https"}`,
			schema.BlobPointer{Scheme: "https", Authority: "example.org:8443", Path: "/b/../c", Query: "a=1&b=%20", Fragment: "top"},
			`{"scheme":"https","path":"/b/../c","authority":"example.org:8443","query":"a=1&b=%20","fragment":"top"}`,
		},
		{
			"https_least", `{"scheme":"https","authority":"[::1]","path":"/"}`,
			schema.BlobPointer{Scheme: "https", Authority: "[::1]", Path: "/"},
			`{"scheme":"https","path":"/","authority":"[::1]"}`,
		},
		{
			"data", `{"scheme":"data","path":"text/plain;base64,aGk="}`,
			schema.BlobPointer{Scheme: "data", Path: "text/plain;base64,aGk="},
			`{"scheme":"data","path":"text/plain;base64,aGk="}`,
		},
		{"data_least", `{"scheme":"data","path":","}`, schema.BlobPointer{Scheme: "data", Path: ","}, `{"scheme":"data","path":","}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := schema.DecodeBlobPointer([]byte(tc.raw), "bodyRef")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if canonical := string(got.Append([]byte("x"))); canonical != "x"+tc.canonical {
				t.Errorf("canonical %s, want %s", canonical, tc.canonical)
			}
		})
	}
}

func TestDecodeBlobPointerRefuses(t *testing.T) {
	t.Parallel()
	const field = "bodyRef"
	for _, tc := range []struct{ name, raw, field, message string }{
		{"not_json", `{`, field, "must be an object"},
		{"nothing", ``, field, "must be an object"},
		{"null", `null`, field, "must be an object"},
		{"string", `"file:///` + secret + `"`, field, "must be an object"},
		{"array", `[]`, field, "must be an object"},
		{"name_twice", `{"scheme":"file","path":"/a","path":"/b"}`, field, "must be an object"},
		{"bad_utf8", "{\"scheme\":\"file\",\"path\":\"/\xff\"}", field, "must be an object"},
		{"too_deep", `{"scheme":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, field, "must be an object"},
		{"empty", `{}`, field + ".path", "must be a non-empty string"},
		{"no_path", `{"scheme":"file"}`, field + ".path", "must be a non-empty string"},
		{"empty_path", `{"scheme":"file","path":""}`, field + ".path", "must be a non-empty string"},
		{"no_scheme", `{"path":"/a"}`, field + ".scheme", "must be one of file, https, data"},
		{"other_scheme", `{"scheme":"http","path":"/` + secret + `"}`, field + ".scheme", "must be one of file, https, data"},
		{"scheme_in_capitals", `{"scheme":"FILE","path":"/a"}`, field + ".scheme", "must be one of file, https, data"},
		{"scheme_number", `{"scheme":1,"path":"/a"}`, field + ".scheme", "must be a string"},
		{"path_null", `{"scheme":"file","path":null}`, field + ".path", "must be a string"},
		{"query_object", `{"scheme":"file","path":"/a","query":{}}`, field + ".query", "must be a string"},
		{"unknown_member", `{"scheme":"file","path":"/a","host":"x"}`, field, `has the unknown member "host"`},
		{"unknown_member_case", `{"scheme":"file","Path":"/a"}`, field, `has the unknown member "Path"`},
		{"file_relative", `{"scheme":"file","path":"` + secret + `"}`, field + ".path", "must be an absolute path"},
		{"file_dot_dot", `{"scheme":"file","path":"/blobs/../` + secret + `"}`, field + ".path", "must be an absolute path"},
		{"file_dot_dot_end", `{"scheme":"file","path":"/blobs/.."}`, field + ".path", "must be an absolute path"},
		{"file_dot", `{"scheme":"file","path":"/./a"}`, field + ".path", "must be an absolute path"},
		{"file_slashes", `{"scheme":"file","path":"//a"}`, field + ".path", "must be an absolute path"},
		{"file_slash_end", `{"scheme":"file","path":"/a/"}`, field + ".path", "must be an absolute path"},
		{"file_nul", `{"scheme":"file","path":"/a\u0000b"}`, field, "must not hold control characters"},
		{"file_newline", `{"scheme":"file","path":"/a\n"}`, field, "must not hold control characters"},
		{"file_delete", `{"scheme":"file","path":"/a\u007f"}`, field, "must not hold control characters"},
		{"file_authority", `{"scheme":"file","path":"/a","authority":"h"}`, field, "may have only a path"},
		{"file_query", `{"scheme":"file","path":"/a","query":"q"}`, field, "may have only a path"},
		{"file_fragment", `{"scheme":"file","path":"/a","fragment":"f"}`, field, "may have only a path"},
		{"https_no_authority", `{"scheme":"https","path":"/a"}`, field + ".authority", "must be a host"},
		{"https_user", `{"scheme":"https","path":"/a","authority":"` + secret + `@h"}`, field + ".authority", "must be a host"},
		{"https_path_in_authority", `{"scheme":"https","path":"/a","authority":"h/x"}`, field + ".authority", "must be a host"},
		{"https_query_in_authority", `{"scheme":"https","path":"/a","authority":"h?x"}`, field + ".authority", "must be a host"},
		{"https_fragment_in_authority", `{"scheme":"https","path":"/a","authority":"h#x"}`, field + ".authority", "must be a host"},
		{"https_space", `{"scheme":"https","path":"/a","authority":"h x"}`, field + ".authority", "must be a host"},
		{"https_backslash", `{"scheme":"https","path":"/a","authority":"h\\x"}`, field + ".authority", "must be a host"},
		{"https_relative", `{"scheme":"https","path":"a","authority":"h"}`, field + ".path", "must begin with a slash"},
		{"https_control", `{"scheme":"https","path":"/a","authority":"h","query":"\r\n"}`, field, "must not hold control characters"},
		{"data_no_comma", `{"scheme":"data","path":"aGk="}`, field + ".path", "must be of the form"},
		{"data_authority", `{"scheme":"data","path":",a","authority":"h"}`, field, "may have only a path"},
		{"data_fragment", `{"scheme":"data","path":",a","fragment":"h"}`, field, "may have only a path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := schema.DecodeBlobPointer([]byte(tc.raw), field)
			if err == nil {
				t.Fatalf("decoded as %+v", p)
			}
			if err.Kind != fault.InvalidInput || err.Field != tc.field || !strings.HasPrefix(err.Message, "Invalid input: "+tc.field+" "+tc.message) {
				t.Errorf("class %d at %q: %s", err.Kind, err.Field, err.Message)
			}
			if strings.Contains(err.Message, secret) {
				t.Errorf("repeats the value: %s", err.Message)
			}
		})
	}
}

// TestAppendBlobPointerIsJSON checks that the canonical form is JSON, whatever the fields contain.
func TestAppendBlobPointerIsJSON(t *testing.T) {
	t.Parallel()
	for _, p := range []schema.BlobPointer{{}, {Path: "/a"}, {Query: "\xff\n"}, {Scheme: `"`, Fragment: `\`}} {
		if line := p.Append(nil); !schema.Valid(line) {
			t.Errorf("%+v became %s", p, line)
		}
	}
}

// FuzzBlobPointer checks that the canonical form of a valid pointer decodes to the same pointer.
func FuzzBlobPointer(f *testing.F) {
	for _, raw := range []string{
		`{"scheme":"file","path":"/tmp/x"}`,
		`{"path":"\/\u00e9\ud83d\ude00","scheme":"f\u0069le","query":""}`,
		`{"scheme":"https","authority":"example.org","path":"/a","query":"q","fragment":"f"}`,
		`{"scheme":"data","path":"text/plain,\"\\"}`,
		`{"scheme":"file","path":"/a/../b"}`, `null`, `{`, ` `,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := schema.DecodeBlobPointer(raw, "ref")
		if err != nil {
			if err.Kind != fault.InvalidInput || !strings.HasPrefix(err.Field, "ref") {
				t.Fatalf("%+v", err)
			}
			return
		}
		canonical := p.Append(nil)
		again, err := schema.DecodeBlobPointer(canonical, "ref")
		if err != nil || again != p || string(again.Append(nil)) != string(canonical) {
			t.Fatalf("%s is not canonical: %+v became %+v, %v", canonical, p, again, err)
		}
	})
}
