// Package authority_test tests the rules of authority with random sequences of commands, also under concurrent load.
package authority_test
