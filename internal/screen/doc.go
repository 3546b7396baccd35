// Package screen sits tests down at a terminal.
package screen
