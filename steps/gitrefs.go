package steps

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
)

// refsOf returns the repository whose references a file has, below refs or packed; false: none.
func refsOf(path string) (dir string, ok bool) {
	if gitPartOf(path) != gitOther {
		return "", false
	}
	parts := strings.Split(path, "/")
	git := slices.Index(parts, ".git") + 1
	if at := slices.Index(parts[git:], "refs"); at >= 0 {
		return strings.Join(parts[:git+at], "/"), true
	}
	dir, name := split(path)
	return dir, name == "packed-refs"
}

// backAll plans to take changes back: those of references by their values, all others path by path. then returns what a path was, which
// they have not changed.
func (u *plan) backAll(changes []Change, then func(path string) (State, error)) error {
	refs := make(map[string][]Change)
	for _, c := range changes {
		if dir, ok := refsOf(c.Path); ok && !c.Before.IsDir() && !c.After.IsDir() {
			refs[dir] = append(refs[dir], c)
			continue
		}
		if err := u.back(c); err != nil {
			return err
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(refs)) {
		if err := u.backRefs(dir, refs[dir], then); err != nil {
			return err
		}
	}
	return nil
}

// backRefs plans to take back what changes did to the references of a repository. A reference is a value, in a file of its own or else
// among the packed ones: where git keeps it may have changed since, as by "git gc".
func (u *plan) backRefs(dir string, changes []Change, then func(path string) (State, error)) error {
	at := join(dir, "packed-refs")
	var packed Change
	loose := make(map[string]Change)
	base := u.now(at)
	restored := false
	for _, c := range changes {
		if c.Path == at {
			packed, restored = c, base.merged == nil && base.State == c.After
		} else {
			loose[c.Path[len(dir)+1:]] = c
		}
	}
	if packed.Path == "" {
		state, err := then(at)
		if err != nil {
			return err
		}
		packed.Before, packed.After = state, state
	}
	var values [3]map[string]string
	for i, w := range []wanted{{State: packed.Before}, {State: packed.After}, base} {
		text, ok, err := u.small(at, w)
		if err != nil || !ok {
			return err
		}
		values[i] = packedValues(text)
	}
	before, after, now := values[0], values[1], values[2]
	kept := now
	if restored {
		base, kept = wanted{State: packed.Before}, before
	}
	names := make(map[string]bool)
	for _, all := range []map[string]string{before, after, now} {
		for name := range all {
			names[name] = true
		}
	}
	for name := range loose {
		names[name] = true
	}
	var gone []string // that may not be packed any more
	for _, name := range slices.Sorted(maps.Keys(names)) {
		drop, err := u.backRef(join(dir, name), loose[name], [3]string{before[name], after[name], now[name]}, kept[name])
		if err != nil {
			return err
		}
		if drop {
			gone = append(gone, name)
		}
	}
	if gone != nil {
		text, ok, err := u.small(at, base)
		if err != nil || !ok {
			return err
		}
		base.merged = unpacked(text, gone)
	}
	if gone != nil || restored {
		u.want[at] = base
	}
	return nil
}

// backRef plans to take back what a change, of the file at path or of what is packed before, after and now, did to a reference. kept is
// what will be packed; drop says that it must not be.
func (u *plan) backRef(path string, c Change, packed [3]string, kept string) (drop bool, err error) {
	file, changed := u.now(path), c.Path != ""
	var is [3]string // before, after and now
	for i, w := range []wanted{{State: c.Before}, {State: c.After}, file} {
		text, ok, err := u.small(path, w)
		if err != nil || !ok {
			return false, err
		}
		if is[i] = string(bytes.TrimSpace(text)); !w.Exists() {
			is[i] = packed[i]
		}
	}
	before, after, now := is[0], is[1], is[2]
	want := now
	switch {
	case before == after, now == before, !changed && file.Exists(): // in the last case its file, which was there, is its value
	case now == after:
		want = before
		if changed {
			file = wanted{State: c.Before}
		}
	case now == "":
		u.conflict(path, "it was removed since")
	case after == "":
		u.conflict(path, "it was made since")
	default:
		u.conflict(path, "it was changed since")
	}
	switch has := file.Exists(); {
	case want == "":
		file, drop = wanted{}, kept != ""
	case !has && kept != want:
		file = wanted{State: State{Mode: modeOfRef}, merged: []byte(want + "\n")}
	}
	if file.merged != nil || file.State != u.now(path).State {
		u.want[path] = file
	}
	return drop, nil
}

// modeOfRef is the mode of a file with a reference that had none.
const modeOfRef = 0o100644

// small returns the text of a file, if there is one. It returns false, and notes a conflict, if that cannot be had.
func (u *plan) small(path string, w wanted) (text []byte, ok bool, err error) {
	switch {
	case !w.Exists():
		return nil, true, nil
	case !w.isFile():
		u.conflict(path, "it became something else since")
		return nil, false, nil
	}
	text, err = u.text(w)
	if errors.Is(err, ErrMissing) {
		u.missing(path)
		return nil, false, nil
	}
	return text, err == nil, err
}

// packedValues returns the references of a file packed-refs.
func packedValues(text []byte) map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			values[name] = id
		}
	}
	return values
}

// unpacked returns a file packed-refs without some references. A line that begins with ^ belongs to the one before.
func unpacked(text []byte, names []string) []byte {
	out, drops := []byte{}, false
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("^")) {
			_, name, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
			drops = slices.Contains(names, name)
		}
		if !drops {
			out = append(out, line...)
		}
	}
	return out
}
