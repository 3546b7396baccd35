// Package cluster connects a kernel to others over NATS JetStream (PROTOCOL 13).
//
// It copies the journal to a stream, and carries signed requests between kernels.
//
// # What it promises
//
//   - The local journal is authoritative. The stream has its entries in order and without a gap: with acknowledge = "disk" those that
//     are durable here, with "quorum" also those that are being synced. A power cut may take these from the journal; the next start
//     fetches them.
//   - A stream has one writer. A message is appended only if it follows the last message that the writer knows, so two kernels
//     with the same name cannot mix their journals.
//   - A copy stops and reports an error if the stream has entries that the journal does not have. It changes neither.
//   - With acknowledge = "quorum", the copy reports to the kernel each entry that a majority of the bus has on disk, and another
//     writer of the stream. One message is in flight at a time, so none can follow one that was refused.
//   - A stream that lost entries gets them again from the journal.
//   - Each message of a stream and each request is signed with the host key of its kernel. The bus is trusted only with delivery.
//
// # What it does not promise
//
//   - That the stream has the last entries of a kernel whose host is lost: with acknowledge = "disk" the copy is asynchronous.
//   - That messages between kernels arrive once after a kernel was restored from an older backup.
package cluster
