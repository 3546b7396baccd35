// Package blob stores the data that BlobPointers refer to (MESSAGE 4.3.2, PROTOCOL 5), which is too large for a line.
//
// A blob is a file in the directory of a Store. Blobs of the kernel's own origin are in the directory itself, where a
// client of the same user may put a file to refer to it. Blobs of another origin are in a subdirectory named after a hash
// of the origin. Names are random, because a name derived from the content would confirm a guess of that content. A
// reference of another origin is not found, as if the blob did not exist.
//
// The directory is open to other programs of the same user, so nothing in it is trusted. Every file is opened below an
// os.Root and then checked by its descriptor: it must be a regular file of this user, with one name, and the file at that
// name.
//
// A confined program does not see the directory, but one of its own: see Adopt. It is a file system of a bounded size, so
// that a program that writes there fills nothing else.
//
// The directory is bounded in bytes and in files, a part of which only the operator's calls may use. Sweep removes a blob that is not in use and older than the time to live.
// A blob is written under a name that no reference can have, and gets its final name when it is complete. It outlives the
// daemon, but is not synced to disk, since the runtime directory does not outlive a restart of the machine.
package blob
