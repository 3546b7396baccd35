// Package quote makes text that anybody may have chosen safe to print. A terminal displays it, and interprets nothing of it;
// a shell reads it as one word of a command.
package quote
