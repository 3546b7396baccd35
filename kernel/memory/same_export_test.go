package memory

var (
	Same      = same
	Outweighs = outweighs
)
