// Package snapshot restores a working directory to its state before an agent worked in it.
//
// A copy is made before the agent starts. It has regular files, directories and symbolic links, with modes and times. Files
// share their blocks with the original if the file system has reflinks (FICLONE); otherwise their bytes count towards a
// limit. Hard links are never used, since a program that writes in place would change the copy too. Sockets, pipes, devices
// and other file systems that are mounted below the directory are omitted, and a restore never changes them.
//
// Other programs may change the directory meanwhile, also to attack. Every entry is opened by its name in its open parent
// directory, without following links, and each file is replaced by a rename. So nothing outside of the directory is read or
// written, and no file is partly restored. The next restore completes an interrupted one.
//
// A copy does not have extended attributes, access control lists, and hard links as such. Owners are kept only for root.
//
// The copies are in a directory that agents cannot see. Libraries for copying trees (containerd/continuity, otiai10/copy,
// KarpelesLab/reflink) are not used, because they open paths: a link that is created during the copy leads them out of the
// directory.
package snapshot
