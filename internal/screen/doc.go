// Package screen runs programs in a pseudo-terminal, for tests.
package screen
