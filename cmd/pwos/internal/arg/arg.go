// Package arg is the grammar of pwos's command line: what a text names where an agent, a question, an entry or a time is expected.
//
// It only reads text. Which process has a name, and whether a file or a key exists, is asked elsewhere. All errors are the user's.
package arg

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/access"
)

// Operator stands for PID 0 where the operator may be meant.
const Operator = "operator"

// Who says which agents a place of the command line accepts.
type Who struct {
	Operator bool // the operator, as 0 or by its name
	Mailbox  bool // the operator's mailbox, by its name only: 0 may mean all agents there
	Abroad   bool // agents of other kernels, as 12@beta
}

// Agent is an agent as the command line names it.
type Agent struct {
	PID    int64  // if Name is ""; 0 is the operator
	Name   string // the whole name, such as planner/writer; "": PID says which
	Kernel string // another kernel's name; "": none was given
}

// ParseAgent parses the name or the PID of an agent. A number is always a PID: an agent from before that is named 12 has a PID too.
func ParseAgent(text string, who Who) (Agent, error) {
	var a Agent
	process, kernel, abroad := cutLast(text, "@")
	switch {
	case abroad && process == "" && number(kernel):
		return a, fmt.Errorf("%q is a time, not an agent", text)
	case abroad && (process == "" || !access.KernelName(kernel)):
		return a, fmt.Errorf("%q does not name a kernel after the @: 12@beta is process 12 of the kernel beta", text)
	case abroad && !who.Abroad:
		return a, fmt.Errorf("%q is an agent of another kernel, and only those of this one can be named here", text)
	}
	a.Kernel = kernel
	switch least := least(who); {
	case process == Operator && (who.Operator || who.Mailbox):
	case number(process):
		pid, err := strconv.ParseInt(process, 10, 64)
		if err != nil || pid < least {
			return a, fmt.Errorf("%q is not a PID: PIDs are numbers from %d; \"pwos ps\" lists them", text, least)
		}
		a.PID = pid
	case strings.HasPrefix(process, "#"):
		return a, fmt.Errorf("%q is an entry of the record, not an agent: give the name or the PID of one", text)
	case isStep(process):
		return a, fmt.Errorf("%q is a step, not an agent: give the name or the PID of one", text)
	case process == "" || slashed(process):
		return a, fmt.Errorf("%q is not an agent: give a name, as planner or planner/writer, or a PID; \"pwos ps\" lists them", text)
	default:
		a.Name = process
	}
	return a, nil
}

func least(who Who) int64 {
	if who.Operator {
		return 0
	}
	return 1
}

// slashed reports whether one of the names in a path of names is empty.
func slashed(name string) bool {
	return strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.Contains(name, "//")
}

// number reports whether text is a whole number, which may have a sign.
func number(text string) bool {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isStep reports whether text has the form of a step, NAME:12.
func isStep(text string) bool {
	name, step, found := cutLast(text, ":")
	return found && name != "" && number(step)
}

// cutLast cuts text around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// ParseQuestion parses the id of a question, q-3 or 3, and returns it as q-3.
func ParseQuestion(text string) (string, error) {
	digits := strings.TrimPrefix(text, "q-")
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n > 0 && strings.Trim(digits, "0123456789") == "" {
		return "q-" + strconv.FormatInt(n, 10), nil
	}
	return "", fmt.Errorf("%q is not a question: they are q-1, q-2 and so on; \"pwos approvals\" lists them", text)
}

// ParseEntry parses the number of an entry, 12 or #12, which is least or greater.
func ParseEntry(text string, least int64) (int64, error) {
	digits := strings.TrimPrefix(text, "#")
	seq, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err == nil && seq >= least && strings.Trim(digits, "0123456789") == "":
		return seq, nil
	case isStep(text):
		return 0, fmt.Errorf("%q is a step, not an entry: an entry is a number, such as 12 or #12", text)
	}
	return 0, fmt.Errorf("%q is not the number of an entry: they count from %d, and may be written #12; \"pwos audit log\" lists them", text, least)
}
