// Package cluster connects a kernel to others over NATS JetStream (PROTOCOL 13).
//
// It copies the journal to a stream, and carries signed requests between kernels.
//
// # What it promises
//
//   - The local journal is the truth. What is in the stream is what was durable here before, in its order, without a gap.
//   - A stream has one writer. Each message is appended only behind the one that the writer knows to be the last, so that two
//     kernels with the same name cannot mix their journals.
//   - A copy that meets other entries in the stream than in the journal stops and says so. It changes neither.
//   - With acknowledge = "quorum", the kernel is told of an entry once a majority of the bus has it on disk, and of another writer of
//     the stream. One message is in flight at a time, so none can follow one that was refused.
//   - A stream that lost its end, or all of it, is filled again from the journal.
//   - Each message of a stream and each request is signed with the host key of its kernel. The bus is not trusted with
//     more than delivery.
//
// # What it does not promise
//
//   - That the stream has the last entries of a kernel whose host is lost: with acknowledge = "disk" the copy is asynchronous.
//   - That messages between kernels arrive once after a kernel was restored from an older backup.
package cluster
