package bus

// Routes returns how many connections to other nodes there are.
func (n *Node) Routes() int { return n.server.NumRoutes() }
