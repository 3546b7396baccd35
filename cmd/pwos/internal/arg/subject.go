package arg

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema/quote"
)

// Subject is what a cause is asked of: an entry, a key, a file, or one of the last two if Key and File are both set.
type Subject struct {
	Seq  int64 // 0: not an entry
	Key  string
	File string
	Step bool // the text has the form of a step too
}

// ParseSubject parses the subject of `pwos why`. key: and file: say which; a number, or one after #, is an entry.
func ParseSubject(text string) (Subject, error) {
	if key, said := strings.CutPrefix(text, "key:"); said && key != "" {
		return Subject{Key: key}, nil
	}
	if path, said := strings.CutPrefix(text, "file:"); said && path != "" {
		return Subject{File: path}, nil
	}
	switch {
	case text == "" || text == "key:" || text == "file:":
		return Subject{}, fmt.Errorf("%q names nothing: give an entry, as 34 or #34, a key, as notes/1, or a file", text)
	case number(text) || strings.HasPrefix(text, "#"):
		seq, err := ParseEntry(text, 1)
		return Subject{Seq: seq}, err
	}
	return Subject{Key: text, File: text, Step: isStep(text)}, nil
}

// Which returns the subject that is left of one that may be a key or a file, given which of them exist.
func (s Subject) Which(isKey, isFile bool) (Subject, error) {
	switch text := s.Key; {
	case s.Key == "" || s.File == "":
		return s, nil
	case isKey && isFile:
		return s, fmt.Errorf("%q is a key and a file: %s is the key, %s the file", text, quote.Word("key:"+text), quote.Word("file:"+text))
	case isFile:
		return Subject{File: text}, nil
	case s.Step && !isKey:
		return s, fmt.Errorf("%q is no key; %s shows it if it is a step", text, quote.Command("pwos", "steps", text))
	}
	return Subject{Key: s.Key}, nil
}
