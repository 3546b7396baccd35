// Package emulator keeps what a terminal shows of a program's output, so that something else can be shown for a while.
//
// It knows the sequences that decide what is in a cell and where the cursor is, and ignores the others: these reach the real terminal. Of
// left and right margins and of pictures it knows only that there are some, and of lines of double width nothing. It does not know a line that the real terminal has wrapped differently after a change of its width, or has pulled back from its scrollback.
package emulator
