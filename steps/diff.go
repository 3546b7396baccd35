package steps

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Composed returns what steps did together: what was there before the first, and after the last, of those that changed a path.
func Composed(list []*Step) []Change {
	at := make(map[string]int)
	var all []Change
	for _, step := range list {
		for _, c := range step.Changes {
			if i, ok := at[c.Path]; ok {
				all[i].After = c.After
				continue
			}
			at[c.Path] = len(all)
			all = append(all, c)
		}
	}
	all = slices.DeleteFunc(all, func(c Change) bool { return c.Before == c.After })
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Diff writes changes as git does: renames without a change of the content as such, secret contents not at all.
func (s *Store) Diff(ctx context.Context, out io.Writer, changes []Change) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	defer s.release()
	for _, p := range pairs(changes) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.writePair(out, p.from, p.to); err != nil {
			return err
		}
	}
	return nil
}

// named is a file or link at a path; without a path it is none.
type named struct {
	State
	path string
}

type both struct{ from, to named }

// pairs returns what is shown of changes: no directories, and what went from one path and came to another as a rename.
func pairs(changes []Change) (list []both) {
	gone := make(map[Ref][]int)
	for i, c := range changes {
		if c.Before.isFile() && !c.After.Exists() && c.Before.Size > 0 && !c.Before.Lost {
			gone[c.Before.Ref] = append(gone[c.Before.Ref], i)
		}
	}
	moved := make(map[int]bool)
	for _, c := range changes {
		p := both{named{c.Before, c.Path}, named{c.After, c.Path}}
		if !c.Before.content() {
			p.from = named{}
		}
		if !c.After.content() {
			p.to = named{}
		}
		if from := gone[c.After.Ref]; p.from.path == "" && p.to.isFile() && len(from) > 0 {
			p.from = named{changes[from[0]].Before, changes[from[0]].Path}
			moved[from[0]], gone[c.After.Ref] = true, from[1:]
		}
		list = append(list, p)
	}
	i := -1
	return slices.DeleteFunc(list, func(p both) bool {
		i++
		return moved[i] && p.to.path == "" || p.from.path == "" && p.to.path == ""
	})
}

// writePair writes how one file became another.
func (s *Store) writePair(out io.Writer, from, to named) error {
	var b bytes.Buffer
	a, z := from.path, to.path
	if a == "" {
		a = z
	}
	if z == "" {
		z = a
	}
	fmt.Fprintf(&b, "diff --git %s %s\n", quoted("a/"+a), quoted("b/"+z))
	switch {
	case from.path == "":
		fmt.Fprintf(&b, "new file mode %s\n", gitMode(to.State))
	case to.path == "":
		fmt.Fprintf(&b, "deleted file mode %s\n", gitMode(from.State))
	case from.kind() != to.kind(): // git shows that as two files
		return errors.Join(s.writePair(out, from, named{}), s.writePair(out, named{}, to))
	case gitMode(from.State) != gitMode(to.State):
		fmt.Fprintf(&b, "old mode %s\nnew mode %s\n", gitMode(from.State), gitMode(to.State))
	}
	if a != z {
		fmt.Fprintf(&b, "similarity index 100%%\nrename from %s\nrename to %s\n", quoted(a), quoted(z))
	}
	if from.Ref == to.Ref && from.path != "" && to.path != "" {
		if a == z && gitMode(from.State) == gitMode(to.State) {
			return nil // a mode that git does not know
		}
		_, err := out.Write(b.Bytes())
		return err
	}
	labels := [2]string{"/dev/null", "/dev/null"}
	var texts [2][]byte
	why := ""
	for i, f := range []named{from, to} {
		if f.path == "" {
			continue
		}
		labels[i] = quoted([]string{"a/", "b/"}[i] + f.path)
		switch text, err := s.shown(f.State); {
		case f.Secret:
			why = "Secret"
		case errors.Is(err, ErrMissing):
			why = "Uncovered"
		case err != nil:
			return err
		case !isText(text) && why == "":
			why = "Binary"
		default:
			texts[i] = text
		}
	}
	if why != "" {
		fmt.Fprintf(&b, "%s files %s and %s differ\n", why, labels[0], labels[1])
		_, err := out.Write(b.Bytes())
		return err
	}
	fmt.Fprintf(&b, "index %s..%s", gitName(from, texts[0]), gitName(to, texts[1]))
	if from.path != "" && to.path != "" && gitMode(from.State) == gitMode(to.State) {
		fmt.Fprintf(&b, " %s", gitMode(to.State))
	}
	b.WriteByte('\n')
	b.WriteString(udiff.Unified(labels[0], labels[1], string(texts[0]), string(texts[1])))
	_, err := out.Write(b.Bytes())
	return err
}

// shown returns as much of a content as is shown, if it is text.
func (s *Store) shown(state State) ([]byte, error) {
	if state.Secret {
		return nil, nil
	}
	in, err := s.pack.content(state)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(in, mostText+1))
}

func gitMode(s State) string {
	switch {
	case s.isLink():
		return "120000"
	case s.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// gitName returns the beginning of the name that git gives to a content.
func gitName(f named, text []byte) string {
	if f.path == "" {
		return "0000000"
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(text))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))[:7]
}

// quoted returns a path as git prints it.
func quoted(path string) string {
	var b strings.Builder
	plain := true
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
			plain = false
		case c < ' ' || c >= 0x7f:
			if short := strings.IndexByte("\a\b\t\n\v\f\r", c); short >= 0 {
				b.WriteString(`\` + "abtnvfr"[short:short+1])
			} else {
				b.WriteString(`\` + padded(c))
			}
			plain = false
		default:
			b.WriteByte(c)
		}
	}
	if plain {
		return path
	}
	return `"` + b.String() + `"`
}

func padded(c byte) string {
	octal := strconv.FormatUint(uint64(c), 8)
	return strings.Repeat("0", 3-len(octal)) + octal
}
