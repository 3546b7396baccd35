// Package secret removes from texts what looks secret, before they are kept or shown. Texts such as the arguments of a program say
// secrets in many ways: in an option or variable whose name says so, a header, the user of a URL, the form of well-known tokens. What
// says none of this is not recognized.
package secret

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// redacted replaces what looks secret.
const redacted = "[redacted]"

// longest exceeds what a secret has, in bytes: so far behind the end of what is kept, a text is searched, so that no beginning of one is
// left.
const longest = 4 << 10

// Arguments returns the arguments of a program without what looks secret, with at most so many bytes, of which each argument uses
// PerArgument more than it has, and whether that is less than all. Of what it has returned it returns the same again.
func Arguments(args []string, most int) (list []string, cut bool) {
	room := most + longest
	program, before := "", ""
	for _, arg := range args {
		if most -= PerArgument; most < 0 || room <= 0 {
			return list, true
		}
		shown := stable(program, before, arg[:min(len(arg), room)])
		if room -= len(arg); len(shown) > most {
			shown = strings.ToValidUTF8(shown[:most], "")
			if stable(program, before, shown) != shown { // the end of what is left looks secret now
				return list, true
			}
			return append(list, shown), true
		}
		if list, most = append(list, shown), most-len(shown); len(list) == 1 {
			program = shown
		}
		before = shown
	}
	return list, false
}

// Text returns a text, such as a shell's, without what looks secret.
func Text(text string) string { return stable("", "", text) }

// stable returns an argument without what looks secret, also of what is left of it.
func stable(program, before, arg string) string {
	const most = 8
	for range most {
		shown := argument(program, before, arg)
		if shown == arg {
			return arg
		}
		arg = shown
	}
	return redacted
}

// PerArgument is what an argument uses besides its bytes.
const PerArgument = 16

// passwordOption is the option of a program that has a password. Its name does not say so, and other programs mean something else by it.
var passwordOption = map[string]string{
	"mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mariadb": "-p", "mariadb-dump": "-p", "sshpass": "-p", "redis-cli": "-a",
}

// apart are those of these programs that take the password as an argument of its own, too.
var apart = []string{"sshpass", "redis-cli"}

// userOptions are options whose value is USER:PASSWORD.
var userOptions = []string{"-u", "-U", "--user", "--proxy-user"}

// argument returns an argument without what looks secret. before is the one before it.
func argument(program, before, arg string) string {
	program = program[strings.LastIndexByte(program, '/')+1:]
	if password := passwordOption[program]; password != "" {
		rest, attached := strings.CutPrefix(arg, password)
		switch {
		case attached && rest != "":
			return password + redacted
		case before == password && slices.Contains(apart, program):
			return redacted
		}
	}
	switch {
	case arg == "" || isOption(arg) && !strings.Contains(arg, "="):
	case isOption(before) && !strings.Contains(before, "=") && secretName(before):
		return redacted
	case slices.Contains(userOptions, before):
		if user, _, both := strings.Cut(arg, ":"); both && strings.Trim(arg, "0123456789:") != "" {
			return user + ":" + redacted
		}
	}
	return once(arg)
}

func isOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// value is a word of a shell's text: quoted, or up to a blank or a delimiter.
const value = `("[^"]*"|'[^']*'|[^\s&;"']+)`

var (
	address    = pattern(`([a-zA-Z][a-zA-Z0-9+.-]*)://([^/\s@'"]*)@`)
	assignment = pattern(`([A-Za-z_][A-Za-z0-9_.-]*)=` + value)
	option     = pattern(`(\s--?[A-Za-z][A-Za-z0-9-]*)\s+("[^"]*"|'[^']*'|[^\s"'-]\S*)`)
	header     = pattern(`([A-Za-z][A-Za-z0-9_-]*)(["']?\s*:\s*["']?)([^\n"']+)`)
	login      = pattern(`(\s(?:-u|-U|--user|--proxy-user)[\s=]*["']?[^\s:'"]+:)[^\s'"]+`)
	key        = pattern(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(-----END [A-Z ]*PRIVATE KEY-----)?`)
	// token is the form of secrets of well-known services, and of a JSON web token.
	token = pattern(`\b(gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{16,}|[sr]k_(live|test)_[A-Za-z0-9]{10,}` +
		`|xox[abeoprs]-[A-Za-z0-9-]{10,}|(AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{20,}|pwenc:v1:[A-Za-z0-9_=-]+` +
		`|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)`)
)

// pattern compiles a pattern when it is first used: most processes of pwos use none.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// once returns a text without what looks secret at first.
func once(text string) string {
	if strings.Contains(text, "://") {
		text = address().ReplaceAllStringFunc(text, func(found string) string {
			scheme, user, _ := strings.Cut(found, "://")
			if strings.HasSuffix(scheme, "ssh") && !strings.Contains(user, ":") { // git@
				return found
			}
			return scheme + "://" + redacted + "@"
		})
	}
	if strings.Contains(text, "=") {
		text = replaced(assignment(), text, "=")
	}
	if strings.Contains(text, ":") {
		text = header().ReplaceAllStringFunc(text, func(found string) string {
			parts := header().FindStringSubmatch(found)
			clear := strings.ContainsAny(parts[1], "-_") || strings.ContainsAny(parts[2], `"'`) || slices.Contains(plainHeaders, strings.ToLower(parts[1]))
			if !secretName(parts[1]) || !clear || strings.HasPrefix(parts[3], "//") { // "auth: a subject" is none
				return found
			}
			return parts[1] + parts[2] + redacted
		})
		text = login().ReplaceAllString(text, "${1}"+redacted)
	}
	if strings.Contains(text, " -") {
		text = replaced(option(), text, " ")
	}
	if strings.Contains(text, "PRIVATE KEY") {
		text = key().ReplaceAllString(text, redacted)
	}
	return token().ReplaceAllString(text, redacted)
}

// plainHeaders are headers and members with a secret whose names are one word.
var plainHeaders = []string{"authorization", "cookie", "password"}

// replaced replaces the second part of what a pattern finds if the first is the name of a secret.
func replaced(of *regexp.Regexp, text, between string) string {
	return of.ReplaceAllStringFunc(text, func(found string) string {
		parts := of.FindStringSubmatch(found)
		if !secretName(parts[1]) {
			return found
		}
		return parts[1] + between + redacted
	})
}

// Words in names of secrets, and their ends; before key one is needed that says which key. A name that ends with one of harmless is not one
// of a secret, but says where it is, or what it is called.
var (
	secretEnds  = []string{"authorization", "token", "secret", "password", "passwd", "passphrase", "credentials", "apikey"}
	secretWords = []string{
		"auth", "bearer", "cookie", "secret", "pass", "pwd", "credential", "jwt", "otp", "assertion",
	}
	keyWords = []string{"api", "access", "private", "secret", "signing", "encryption", "account", "master", "auth"}
	harmless = []string{"stdin", "file", "path", "dir", "env", "command", "cmd", "helper", "type", "name", "id", "ttl", "expiry", "url", "uri", "host", "endpoint", "method", "mode"}
)

// secretName reports whether an option, a variable or a header with that name has a secret.
func secretName(name string) bool {
	list := words(name)
	if len(list) == 0 || slices.Contains(harmless, list[len(list)-1]) {
		return false
	}
	for i, word := range list {
		ends := slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(word, end) })
		if ends || slices.Contains(secretWords, word) || word == "key" && i > 0 && slices.Contains(keyWords, list[i-1]) {
			return true
		}
	}
	return false
}

// words splits a name at its delimiters, and before each capital letter that follows a small one.
func words(name string) (list []string) {
	small := false
	begin := 0
	cut := func(end int) {
		if end > begin {
			list = append(list, strings.ToLower(name[begin:end]))
		}
	}
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut(i)
			begin = i + utf8.RuneLen(r)
		case unicode.IsUpper(r) && small:
			cut(i)
			begin = i
		}
		small = unicode.IsLower(r)
	}
	cut(len(name))
	return list
}
