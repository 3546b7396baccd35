package profile

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is a row of the table of settings.
type Setting struct {
	Key   string // in a profile's file, and of --set
	Flag  string // of pwos run, without the dashes, such as "net" or "limit processes="; "": it has none
	About string
	Takes string // its values, in words

	at  any // pointer to the member of a profile
	tag reflect.StructTag
}

// Settings returns the table of the settings that have an effect.
func Settings() []*Setting {
	return slices.DeleteFunc(new(Profile).settings(), func(s *Setting) bool { return s.is("retired") })
}

// Retired returns the first setting of p that is accepted and has no effect any more, as a flag; "" if there is none.
func (p *Profile) Retired() string {
	for _, m := range p.members() {
		if m.is("retired") && !reflect.ValueOf(m.at).Elem().IsZero() {
			return "--" + m.Flag
		}
	}
	return ""
}

// settings returns the table of all settings, whose rows set members of p.
func (p *Profile) settings() (rows []*Setting) {
	for _, m := range p.members() {
		of := reflect.ValueOf(m.at).Elem()
		if of.Kind() != reflect.Struct {
			rows = append(rows, m)
			continue
		}
		for f, at := range of.Fields() { // a data type of the kernel, which has its own tags
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			rows = append(rows, &Setting{
				Key: m.Key + "." + name, Flag: m.Flag + " " + name + "=", About: strings.TrimSuffix(f.Tag.Get("doc"), "."),
				at: at.Addr().Interface(), tag: f.Tag,
			})
		}
	}
	for _, s := range rows {
		s.Takes = s.takes()
	}
	return rows
}

// members returns the members of p as rows. A table of settings is one of them.
func (p *Profile) members() (rows []*Setting) {
	for f, at := range reflect.ValueOf(p).Elem().Fields() {
		if key := f.Tag.Get("key"); key != "" {
			flag, _, _ := strings.Cut(f.Tag.Get("flag"), ",")
			rows = append(rows, &Setting{Key: key, Flag: flag, About: f.Tag.Get("about"), at: at.Addr().Interface(), tag: f.Tag})
		}
	}
	return rows
}

// Flag describes a flag of pwos run that sets settings.
type Flag struct {
	Name, About string
	Shown       bool // whether the help of pwos run has it
	Yes         bool // whether it is true or false
}

// Flags returns the flags that set settings.
func Flags() (all []Flag) {
	for _, m := range new(Profile).members() {
		if m.Flag == "" {
			continue
		}
		_, yes := m.at.(*bool)
		f := Flag{Name: m.Flag, About: m.About, Shown: m.is("shown"), Yes: yes}
		if m.isList() || m.form() != "" {
			f.About += "; may be repeated"
		}
		all = append(all, f)
	}
	return all
}

// isList reports whether the setting is a list.
func (s *Setting) isList() bool {
	_, ok := s.at.(*[]string)
	return ok
}

// form returns the form of what the flag of a table takes, such as name=number; "" if the setting is no table.
func (s *Setting) form() string { return s.tag.Get("form") }

// is reports whether there is something special about the setting's flag: shown, path, commas or retired.
func (s *Setting) is(what string) bool {
	return slices.Contains(strings.Split(s.tag.Get("flag"), ",")[1:], what)
}

// takes returns the values of the setting, in words.
func (s *Setting) takes() string {
	switch s.at.(type) {
	case *bool:
		return "true or false"
	case *time.Duration:
		return "a duration such as 5m, of at least 1s"
	case *map[string]float64:
		return "a number of at least 0"
	case **float64:
		return "an amount such as 2 or 0.5, of at most " + s.tag.Get("max")
	case **int64:
		if most := s.tag.Get("max"); most != "" && len(most) < len("9007199254740991") { // the largest number that JSON carries needs no words
			return "a whole number from " + s.tag.Get("min") + " to " + most
		}
		return "a whole number of at least " + s.tag.Get("min") + ", such as 10 or 256M"
	case *[]string:
		return "a list of " + s.tag.Get("takes")
	}
	if words := strings.Fields(s.tag.Get("enum")); len(words) > 0 {
		last := len(words) - 1
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return s.tag.Get("takes")
}

// put sets the setting to a text of a command line, which a list or a table adds. It reports whether the text is valid.
func (s *Setting) put(text string) bool {
	switch at := s.at.(type) {
	case *string:
		*at = text
		words := strings.Fields(s.tag.Get("enum"))
		return s.matches(text) && (len(words) == 0 || slices.Contains(words, text))
	case *[]string:
		if !s.is("commas") {
			*at = append(*at, text)
			return s.matches(text) && (text != "" || !s.is("path"))
		}
		*at = append([]string{}, *at...) // an empty list, not none
		if text != "" {
			*at = append(*at, strings.Split(text, ",")...)
		}
		return true
	case *bool:
		on, err := strconv.ParseBool(text)
		*at = on
		return err == nil
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*at = d
		return err == nil && d >= time.Second
	case **int64:
		n, ok := Count(text)
		*at = &n
		return ok && s.within(float64(n))
	case **float64:
		n, err := strconv.ParseFloat(text, 64)
		*at = &n
		return err == nil && s.within(n)
	case *map[string]float64:
		name, amount, _ := strings.Cut(text, "=")
		n, err := strconv.ParseFloat(amount, 64)
		if *at == nil {
			*at = make(map[string]float64)
		}
		(*at)[name] = n
		return err == nil && name != "" && s.within(n)
	}
	return false
}

// load sets the setting to a value of a file, or adds it to a table by its name. It reports whether the value is valid. An empty text is
// no value.
func (s *Setting) load(name string, value any) bool {
	text := fmt.Sprint(value)
	_, isText := value.(string)
	_, isWhole := value.(int64)
	_, isNumber := value.(float64)
	switch at := s.at.(type) {
	case *string, *time.Duration:
		return isText && (text == "" || s.put(text))
	case *bool:
		_, ok := value.(bool)
		return ok && s.put(text)
	case **int64:
		return (isWhole || isText) && s.put(text)
	case **float64:
		return (isWhole || isNumber) && s.put(text)
	case *map[string]float64:
		return (isWhole || isNumber) && s.put(name+"="+text)
	case *[]string:
		items, ok := value.([]any)
		*at = nil
		for _, item := range items {
			text, isText := item.(string)
			*at, ok = append(*at, text), ok && isText && s.matches(text)
		}
		return ok && s.within(float64(len(items)))
	}
	return false
}

// matches reports whether a text fits the setting's pattern.
func (s *Setting) matches(text string) bool {
	pattern, ok := s.tag.Lookup("match")
	return !ok || regexp.MustCompile(pattern).MatchString(text)
}

// within reports whether a number is within the setting's bounds.
func (s *Setting) within(n float64) bool {
	least, _ := strconv.ParseFloat(s.tag.Get("min"), 64)
	most, err := strconv.ParseFloat(s.tag.Get("max"), 64)
	if err != nil {
		most = math.MaxFloat64
	}
	return n >= least && n <= most
}

// discard makes the setting a missing one.
func (s *Setting) discard() { reflect.ValueOf(s.at).Elem().SetZero() }

// value returns the setting as it is in a file; nil if it is missing.
func (s *Setting) value() any {
	switch v := reflect.ValueOf(s.at).Elem(); at := s.at.(type) {
	case *time.Duration:
		if *at != 0 {
			return at.String()
		}
	default:
		if !v.IsZero() {
			return reflect.Indirect(v).Interface()
		}
	}
	return nil
}

// Count parses a whole number, with an optional suffix K, M or G (powers of 1024).
func Count(text string) (n int64, ok bool) {
	digits := strings.TrimRight(text, "KMG")
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	return n << shift, ok && err == nil && n >= 0 && n <= math.MaxInt64>>shift
}
