// Package screen gives a test a terminal to drive.
package screen
