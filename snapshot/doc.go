// Package snapshot restores a working directory to what it was before an agent worked in it.
//
// A copy is made before the agent starts. It has regular files, directories and symbolic links, with modes and times. Files share their blocks with the
// original if the file system has reflinks (FICLONE); else their bytes count against a limit. Hard links are never
// used: a program that writes in place would change the copy too. Sockets, pipes, devices and other file systems that
// are mounted below the directory are left out, and never changed by a restore.
//
// Others may change the directory meanwhile, also to attack. Every entry is opened by its name in its open parent
// directory, without following links, and each file is replaced by rename: nothing outside of the directory is read or
// written, and no file is ever half restored. A restore that is cut short is completed by the next.
//
// Not kept: extended attributes, access control lists, and that two names are one file. Owners are kept for root only.
//
// The copies lie in a directory that agents cannot see. No library for copying trees is used: those that were looked
// at (containerd/continuity, otiai10/copy, KarpelesLab/reflink) open paths, so that a link that is put in the way of
// the copy leads it out of the directory.
package snapshot
