package main

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/examples"
	"github.com/promptware-os/pwos/schema"
)

// turn is one line of the session with the kernel's answer.
type turn struct {
	frame  examples.Frame
	answer string // empty where none is due
	failed bool   // the answer is an error
}

// pair finds the answer to each frame. The order tells: every frame gets one, but for valid events. It refuses answers
// that are not what the kernel promises.
func pair(frames []examples.Frame, answers []string) ([]turn, error) {
	var turns []turn
	for _, frame := range frames {
		t := turn{frame: frame}
		asked, fault := schema.Decode([]byte(frame.Line), schema.OsMessage)
		if fault != nil || asked.Kind != schema.Event {
			if len(answers) == 0 {
				return nil, fmt.Errorf("match answers: the kernel did not answer %s", frame.Line)
			}
			t.answer, answers = answers[0], answers[1:]
			said, fault := schema.Decode([]byte(t.answer), schema.OsMessage)
			if fault != nil || said.Meta.Causation != asked.Meta.ID {
				return nil, fmt.Errorf("match answers: %s does not answer %s", t.answer, frame.Line)
			}
			t.failed = said.Kind == schema.Failure
		}
		turns = append(turns, t)
	}
	if len(answers) > 0 {
		return nil, errors.New("match answers: the kernel said more than it was asked")
	}
	return turns, nil
}

func (a *app) showTurns(turns []turn) error {
	if a.json {
		return a.printTurns(turns)
	}
	_, err := fmt.Fprintf(a.stdout, "%s\n\n", a.style(faint, fmt.Sprintf(
		"A kernel was booted in a temporary directory and sent %d lines through one pipe. This is what it answered.", len(turns))))
	for i, t := range turns {
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "%2d  %s\n    %s %s\n    %s\n\n", i+1, a.style(bold, t.frame.Caption),
				a.style(faint, "->"), brief(t.frame.Line), a.answerLine(t))
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(a.stdout, a.style(faint, "The kernel has shut down, and its directory is gone."))
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func (a *app) answerLine(t turn) string {
	switch {
	case t.answer == "":
		return a.style(faint, "<- (nothing)")
	case t.failed:
		return a.style(bad, "<-") + " " + brief(t.answer)
	}
	return a.style(good, "<-") + " " + brief(t.answer)
}

// brief is a line with its middle left out where it is long: what it is stands at its beginning, what it answers at its
// end.
func brief(line string) string {
	const most, head, tail = 340, 170, 110
	runes := []rune(escaped(line))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:head]) + " ... " + string(runes[len(runes)-tail:])
}

// printTurns writes the conversation for programs. A request may be anything, so it is a string.
func (a *app) printTurns(turns []turn) error {
	for _, t := range turns {
		answer := t.answer
		if answer == "" {
			answer = "null"
		}
		o := object(nil).text("shows", t.frame.Caption).text("request", t.frame.Line).raw("answer", []byte(answer))
		if err := a.printLine(o.close()); err != nil {
			return err
		}
	}
	return nil
}
