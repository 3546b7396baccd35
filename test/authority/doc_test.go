// Package authority_test tests the rules of authority with random sequences of commands, also under load.
package authority_test
