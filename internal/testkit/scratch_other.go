//go:build !linux

package testkit

// scratch returns a directory in memory for files of tests. Only Linux has one.
func scratch() string { return "" }
