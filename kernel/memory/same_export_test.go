package memory

// Same compares values, and Outweighs tells one that is too long to be another of so many bytes.
var (
	Same      = same
	Outweighs = outweighs
)
