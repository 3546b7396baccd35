// Package rootfs reads the files that names below root mean.
//
// Every open goes through an os.Root of root or of a mount: a symbolic link is followed as long as it stays below
// it, and refused if it leads out, whoever changes the tree in the meantime. Hard links and file systems that are mounted
// below root are not told from what else is there: who may make them decides what root holds.
//
// A file is read whole, within a bound, and only a regular one: no pipe is waited for and no device is touched.
package rootfs
