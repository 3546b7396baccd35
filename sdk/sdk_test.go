package sdk_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sdk"
)

// TestSameBytes: the output for the same syscalls is the same, also of another kernel.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	_, one := newKernel(t)
	_, other := newKernel(t)
	for _, language := range sdk.Languages() {
		if written(t, language, described(t, one)) != written(t, language, described(t, other)) {
			t.Errorf("%s: two files differ", language)
		}
	}
	if err := sdk.Write(&strings.Builder{}, "cobol", sdk.Kernel{}); err == nil || !strings.Contains(err.Error(), "python and typescript") {
		t.Errorf("an unknown language: %v", err)
	}
}

// TestShapes: a JSON Schema becomes a type, as far as the language can express it.
func TestShapes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ schema, python, typescript string }{
		"anything":           {`{}`, `Any`, `Json`},
		"no schema":          {`true`, `Any`, `Json`},
		"text":               {`{"type":"string","maxLength":3}`, `str`, `string`},
		"text or null":       {`{"type":["string","null"]}`, `Optional[str]`, `string | null`},
		"words":              {`{"type":"string","enum":["a","b\"\n"]}`, `Literal["a", "b\"\n"]`, `"a" | "b\"\n"`},
		"words of all kinds": {`{"type":"string","enum":["a",1]}`, `str`, `string`},
		"whole number":       {`{"type":"integer"}`, `int`, `number`},
		"number":             {`{"type":"number"}`, `float`, `number`},
		"truth":              {`{"type":"boolean"}`, `bool`, `boolean`},
		"list":               {`{"type":"array","items":{"type":"string","enum":["a","b"]}}`, `list[Literal["a", "b"]]`, `Array<"a" | "b">`},
		"list of anything":   {`{"type":"array"}`, `list[Any]`, `Array<Json>`},
		"by name":            {`{"type":"object","additionalProperties":{"type":"number"}}`, `dict[str, float]`, `Record<string, number>`},
		"any object":         {`{"type":"object"}`, `dict[str, Any]`, `Record<string, Json>`},
		"object":             {`{"type":"object","properties":{"a":{}}}`, `XYOutput`, `XYOutput`},
		"list of objects":    {`{"type":"array","items":{"type":"object","properties":{"a":{}}}}`, `list[XYOutput]`, `Array<XYOutput>`},
		"one of two":         {`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `Union[str, int]`, `string | number`},
		"several types":      {`{"type":["string","integer"]}`, `Any`, `Json`},
		"a type of no kind":  {`{"type":7}`, `Any`, `Json`},
		"unknown":            {`{"type":"moon","$ref":"#/a"}`, `Any`, `Json`},
	} {
		k := sdk.Kernel{Syscalls: []schema.DescribeOutput{{Name: "X.Y", Kind: "query", Input: schema.Value(`{}`), Output: schema.Value(tt.schema)}}}
		if got, want := written(t, "python", k), "    ) -> "+tt.python+":\n        \"\"\"\"\"\"\n        answer: "+tt.python+" ="; !strings.Contains(got, want) {
			t.Errorf("%s: python has no %q", name, want)
		}
		if got, want := written(t, "typescript", k), "): Promise<"+tt.typescript+"> {\n"; !strings.Contains(got, want) {
			t.Errorf("%s: typescript has no %q", name, want)
		}
	}
}

// TestNames: names are split into words, and no two syscalls or types have the same name.
func TestNames(t *testing.T) {
	t.Parallel()
	object := schema.Value(`{"type":"object","properties":{"a-b":{"type":"object","properties":{"c":{}}},"a_b":{"type":"object","properties":{"c":{}}}}}`)
	k := sdk.Kernel{}
	for _, name := range []string{"A.BInput", "Ab.C", "AB.C", "HTTPServer.GetURL", "Memory.CompareAndSet", "To.String", "V2.X3y"} {
		k.Syscalls = append(k.Syscalls, schema.DescribeOutput{Name: name, Kind: "query", Input: object, Output: object})
	}
	k.Syscalls = append(k.Syscalls, schema.DescribeOutput{Name: "A.B", Kind: "query", Input: schema.Value(`{"type":"object","properties":{"input":{"type":"object","properties":{"c":{}}}}}`), Output: object})
	for _, name := range []string{"class", "list", "__x", "X", "a b"} { // keywords, and names that an attribute cannot have
		members := schema.Value(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"array"}}}`, name))
		k.Syscalls = append(k.Syscalls, schema.DescribeOutput{Name: "N" + strconv.Itoa(len(k.Syscalls)) + ".O", Kind: "query", Input: members, Output: members})
	}
	for language, names := range map[string][]string{
		"python": {
			"N8OInput = TypedDict(", "N9OInput = TypedDict(", "N10OInput = TypedDict(", "N11OInput = TypedDict(", "N12OInput = TypedDict(",
			"def a_b_input(", "def ab_c(", "def ab_c2(", "def http_server_get_url(", "def memory_compare_and_set(", "def to_string(", "def v2_x3y(", "def a_b(",
			"ABInputInput = TypedDict(", "class ABInputInput2(", "class AbCInputAB(", "class AbCInputAB2(", `AbCInput = TypedDict(`, `"a-b": "NotRequired[AbCInputAB]"`,
		},
		"typescript": {
			"  aBInput(", "  abC(", "  abC2(", "  httpServerGetUrl(", "  memoryCompareAndSet(", "  toString2(", "  v2X3y(", "  aB(",
			"interface ABInputInput {", "interface ABInputInput2 {", "interface AbCInputAB {", "interface AbCInputAB2 {", `  "a-b"?: AbCInputAB;`,
		},
	} {
		source := written(t, language, k)
		for _, name := range names {
			if strings.Count(source, name) != 1 {
				t.Errorf("%s: %q occurs %d times", language, name, strings.Count(source, name))
			}
		}
	}
}

// hostile are texts that would end a comment or a string, and continue with code.
var hostile = []string{
	`"""` + "\nimport os\nos._exit(9)\n" + `"""`, `\"""`, `*/ process.exit(9); /*`, "\u2028process.exit(9)//", "\u202e", "\x00\x7f", `\`, `"`, `\u0000`, `{{.Schemas}}`, "${process.exit(9)}",
	"__proto__", "constructor", "class", "None", "__mangled", "list", "ключ", "a b", "",
}

// register registers syscalls Evil.N0 and so on with hostile text in all their texts, and returns their number.
func register(t testing.TB, c *client.Client) int {
	t.Helper()
	var members, words []string
	for _, text := range hostile {
		quoted := string(schema.AppendString(nil, text))
		words = append(words, quoted)
		members = append(members, fmt.Sprintf(`%s:{"type":"string","description":%[1]s}`, quoted))
	}
	all := strings.Join(members, ",")
	input := fmt.Sprintf(`{"type":"object","properties":{%s,"words":{"type":"string","enum":[%s]},"inner":{"type":"object","properties":{%[1]s}}}}`,
		all, strings.Join(words, ","))
	descriptions := append([]string{strings.Join(hostile, " ")}, hostile...)
	for i, text := range descriptions {
		data := fmt.Sprintf(`{"name":"Evil.N%d","kind":"command","input":%s,"output":%[2]s,"description":%s,"provider":"connection"}`, i, input, schema.AppendString(nil, text))
		_, err := c.Call(testkit.Context(t), schema.KindCommand, "Syscall.Register", []byte(data))
		testkit.Must(t, err)
	}
	return len(descriptions)
}

// TestHostileSchemas: with any text in the description, members and words of a registered syscall, the client is a
// valid program that calls it, and does not run the text.
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, p *project, runtime string, c *client.Client) {
		n := register(t, c)
		evil := p.runner.project(t, written(t, p.language, described(t, c)))
		testkit.Must(t, c.Close())
		same(t, evil.run(runtime, "evil", strconv.Itoa(n)), strings.Repeat("provider.away\n", n))
	})
}

// TestTypesHold: mypy reports nothing about the client in Python, if mypy is installed.
func TestTypesHold(t *testing.T) {
	t.Parallel()
	mypy, err := exec.LookPath("mypy")
	if err != nil {
		t.Skip(err)
	}
	_, c := newKernel(t)
	register(t, c)
	p := runners()[0].project(t, written(t, "python", described(t, c)))
	cmd := exec.CommandContext(testkit.Context(t), mypy, "--strict", "--python-version=3.9", "--cache-dir="+filepath.Join(p.dir, "cache"), p.file)
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("mypy: %v\n%s", err, out)
	}
}
