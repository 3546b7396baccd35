// Package blob keeps the data behind BlobPointers (MESSAGE 4.3.2, PROTOCOL 5): what is too large for a line.
//
// A blob is a file in the directory of a Store. Those of the kernel's own origin lie in the directory itself, where a
// client of the same user may put a file of its own to refer to it; those of another origin lie in a folder named after a
// hash of the origin. Names are random: a name made from the content would confirm a guess of that
// content. A reference of another origin is not found, as if there were no such blob.
//
// The directory is open to other programs of the same user, so nothing in it is trusted. Every file is opened below an
// os.Root and judged after that by its descriptor: only a regular file of ours counts, under one name, that is the very
// file that the name refers to.
//
// What is in the directory is bounded in bytes and in files. A blob that is not in use is removed by Sweep once it is older
// than the time to live. A blob is written under a name that no reference can have and gets its own when it is whole; it
// outlives the daemon, and is not synced to the disk, since the runtime directory does not outlive the machine.
package blob
