// Package peercred says who is at the other end of a Unix socket.
package peercred
