// Package panel shows people the questions of an agent at the terminal that it uses.
//
// It stands between the terminal and the program there. What the program writes passes through it, and so does what a person types. While
// a question is open, a panel is drawn over the program's screen, and drawn again whatever the program writes. Keys are the program's until
// the attention chord: that freezes the question that is shown, draws it whole, and holds the program's output back, so that nothing comes
// over it. Then keys are an answer to that question, which carries its id and digest, or are dropped.
//
// The panel is drawn from a known state of the terminal: an unfinished sequence is ended, margins, origin and insert mode, character sets,
// lines of double width and the status line are switched off, and kitty's pictures are taken away. Margins, modes and sets come back
// afterwards; pictures and lines of double width do not. What the program has shown where the panel is not stays on the screen, and may look
// like a panel. Not undone are colours that the program has changed, and pictures that a multiplexer passed on to the terminal around it.
//
// What counts as a key is only what a person pressed after the terminal had shown the frozen panel: the terminal is asked for its status
// after it was drawn, and all that arrives before the answer is dropped; a terminal that answers nothing is waited for a while. An answer is
// the one key of a read, beside which only keys that are released and a mouse that is moved may be in it. What is pasted, reports of the
// mouse and of the terminal, and keys of the keypad in application mode are none.
package panel
