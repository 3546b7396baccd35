package fetch_test

import (
	"io"
	"log"
)

// quiet returns a logger that discards everything, for servers whose clients disconnect.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
