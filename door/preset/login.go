package preset

import "slices"

// Login is a credential of a model's vendor that the kernel holds, and adds to the requests of the upstream of the same name.
type Login struct {
	Name string
	// Variable is where a user has it who starts hosts by hand.
	Variable string
	// Elsewhere is the variable of the server's address. If a user has set it, the credential is for that server.
	Elsewhere string
	// Get is a host's own command that shows one, nil if there is none.
	Get []string
	// Rotates: it is a login of the host of its name, which renews it.
	Rotates bool
}

// Logins returns the logins of the vendors that pwos knows.
func Logins() []Login {
	return []Login{
		{Name: "anthropic", Variable: "ANTHROPIC_API_KEY", Elsewhere: "ANTHROPIC_BASE_URL"},
		{Name: "claude", Variable: "CLAUDE_CODE_OAUTH_TOKEN", Elsewhere: "ANTHROPIC_BASE_URL", Get: []string{"claude", "setup-token"}},
		{Name: "codex", Rotates: true},
		{Name: "gemini", Variable: "GEMINI_API_KEY", Elsewhere: "GOOGLE_GEMINI_BASE_URL"},
		{Name: "openai", Variable: "OPENAI_API_KEY", Elsewhere: "OPENAI_BASE_URL"},
	}
}

// LoginNamed returns the login of a name, or nil.
func LoginNamed(name string) *Login {
	all := Logins()
	if i := slices.IndexFunc(all, func(l Login) bool { return l.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Users returns the names of the hosts that use a login.
func (l *Login) Users() (names []string) {
	for _, h := range Hosts() {
		if slices.ContainsFunc(h.Upstreams, func(u Upstream) bool { return u.Name == l.Name }) {
			names = append(names, h.Name)
		}
	}
	return names
}
