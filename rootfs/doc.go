// Package rootfs reads the files that names below root refer to.
//
// Every file is opened through an os.Root of root or of a mount. A symbolic link is followed if it stays below it, and
// refused if it leads out, also if the tree changes meanwhile. Hard links and file systems that are mounted below root are
// treated like other files: a user who may create them determines the content of root.
//
// A file is read as a whole, up to a limit. Only regular files are read, so reading neither waits for a pipe nor accesses a
// device.
package rootfs
