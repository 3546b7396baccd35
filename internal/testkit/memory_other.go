//go:build !linux

package testkit

// memoryDir returns "": only Linux has a file system in memory that everybody may use.
func memoryDir() string { return "" }
