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
	return b.String()
}

// tell gives the model a text with the result of the tool that an event is about.
func (r *Run) tell(event, text string) error {
	answer := schema.AppendString([]byte(`{"hookSpecificOutput":{"hookEventName":`), event)
	answer = append(schema.AppendString(append(answer, `,"additionalContext":`...), text), "}}\n"...)
	if _, err := r.Out.Write(answer); err != nil {
		return fmt.Errorf("answer the host: %w", err)
	}
	return nil
}
