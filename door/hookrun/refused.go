package hookrun

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// refused says, to the model, what was not executed in a tool call: the programs only know that permission was denied.
func refused(out *schema.StepEndOutput) string {
	if len(out.Refused) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("pwos did not let these programs run (they failed with EACCES, in a shell exit status 126):")
	for i := range out.Refused {
		one := &out.Refused[i]
		fmt.Fprintf(&b, "\n- %s: ", one.Program)
		if one.Error == string(fault.ApprovalPending) && one.Approval != nil && one.Rule != nil {
			fmt.Fprintf(&b, "the rule %q requires an approval. The question %s was filed. Go on with something else, and try exactly this again once it is answered", *one.Rule, *one.Approval)
		} else {
			b.WriteString(quote.Text(one.Why))
		}
		if one.Fix != "" {
			b.WriteString(". Advice: " + quote.Text(one.Fix))
		}
	}
	if out.More > 0 {
		fmt.Fprintf(&b, "\n- and %d more", out.More)
	}
	return b.String() + "\n"
}

// aside says which files that the tool call made are not there any more.
func aside(out *schema.StepEndOutput) string {
	if len(out.Aside.Items) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("pwos has set files aside that this tool call made or changed, since programs of the user run them as soon as they see them:")
	for _, path := range out.Aside.Items {
		b.WriteString("\n- " + quote.Text(path))
	}
	if more := out.Aside.Count - int64(len(out.Aside.Items)); more > 0 {
		fmt.Fprintf(&b, "\n- and %d more", more)
	}
	b.WriteString("\nThey are as they were before the call. The user is asked whether to put them back: go on without them, and do not make them again\n")
	return b.String()
}

// tell gives the model a text, if there is one, with the result of the tool that an event is about.
func (r *Run) tell(event, text string) error {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	answer := schema.AppendString([]byte(`{"hookSpecificOutput":{"hookEventName":`), event)
	answer = append(schema.AppendString(append(answer, `,"additionalContext":`...), text), "}}\n"...)
	if _, err := r.Out.Write(answer); err != nil {
		return fmt.Errorf("answer the host: %w", err)
	}
	return nil
}
