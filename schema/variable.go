package schema

import "strings"

// PlainVariable reports whether an environment variable says only how text is shown, where something lies, or whom a program trusts.
// "pwos run" passes the caller's, and no value of one is a secret: the journal has it in the clear, so that a kernel which takes over
// on another host can start the program again.
func PlainVariable(name string) bool {
	switch name {
	case "PATH", "HOME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "EDITOR", "VISUAL", "PAGER", "SHELL",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
		"AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "PWOS_RUNTIME_DIR",
		"RUSTUP_HOME", "NVM_DIR", "FNM_DIR", "VOLTA_HOME", "PYENV_ROOT", "ASDF_DATA_DIR", "MISE_DATA_DIR", "SDKMAN_DIR":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// PlainValue reports whether a value of a variable is a switch.
func PlainValue(value string) bool {
	switch value {
	case "0", "1", "true", "false":
		return true
	}
	return false
}
