// Package panel shows people the questions of an agent at the terminal that it uses.
//
// It stands between the terminal and the program there. What the program writes passes through it, and so does what a person types. While
// a question is open, a panel is drawn over the program's screen, and drawn again whatever the program writes. Keys are the program's until
// the attention chord: that freezes the question that is shown, and holds the program's output back, so that nothing else can be on the
// screen. Then keys are an answer to that question, which carries its id and digest, or are dropped.
//
// What counts as a key is only what a person pressed after the terminal had shown the frozen panel: the terminal is asked for its status
// after it was drawn, and all that arrives before the answer is dropped. An answer is the one key of a read. What is pasted, reports of the
// mouse and of the terminal, and keys of the keypad in application mode are none.
package panel
