package kernel

// MaxData is how many bytes the data of a reply may have, so that its line stays within 16,384 bytes (PROTOCOL 2)
// with an envelope of ordinary length. A list that would be longer is cut off.
const MaxData = 15_000
