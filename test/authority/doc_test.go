// Package authority_test tests the rules of authority with random sequences of commands, and under concurrent load.
package authority_test
