// Command wordcount counts the words of the JSON string on its standard input.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	var text string
	if err := json.NewDecoder(os.Stdin).Decode(&text); err != nil {
		fmt.Fprintln(os.Stderr, "read input:", err)
		os.Exit(1)
	}
	fmt.Printf("{\"words\":%d}\n", len(strings.Fields(text)))
}
