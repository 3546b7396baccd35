// Package steps keeps what a directory was at each cut, so that each change can be taken back alone.
//
// A Store watches one tree. Cut compares the tree with what it was at the last cut, stores the content of what changed, and
// appends a Step: path by path what was there before and after. Who made a step, and why, is a Label that the caller
// gives; the package knows directories and steps, no kernel and no agent (PROTOCOL 12).
//
// # Files
//
//	current       the generation that holds
//	content-N     contents: compressed frames of pieces, each named by its SHA-256; append only
//	log-N         steps, one record each, with a checksum; append only
//	index-N       the tree at a step, with what stat said then; saves reading the tree again
//
// The content is synced before the record that names it, so a record that can be read can be undone. Whatever a crash leaves
// after the last complete record or frame is cut at the next Open.
//
// # How changes are found
//
// Linux tells which directories had a change (inotify), and only those are listed again: the cost of a cut is that of the
// directories in which something happened. Where there are no watches, or too few, or the system lost count, the next cut
// walks the whole tree; Status says so. A file is read again if anything of its size, mode, inode, change time or
// modification time differs, or if it changed so shortly before it was read that the clock cannot tell.
//
// # What it promises
//
//   - Names are those of entries in open directories; no symbolic link is followed, nothing outside of the tree is read or written.
//   - Undo writes nothing if a path cannot be undone, unless Partial is asked for. References and settings of git hold back
//     no file of the worktree. A file is replaced by a rename: it is never half of anything.
//   - What cannot be covered (an unreadable file, what does not fit the bounds of Options, another file system mounted below) is in the
//     step as such, and covered once it can be.
//
// # What it does not promise
//
//   - Sockets, pipes, devices, extended attributes and owners are not covered, nor that two names are one file.
//   - A store into a shared mapping gives no event; it is found at the next walk, or when Touch names the file.
package steps
