// Package authority_test holds the kernel to the rules of authority, over random sequences of commands, under load too.
package authority_test
