package step

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	defaultLimit  = 100   // of a list
	room          = 2_000 // bytes of an answer for what is beside a list
	longestPrompt = 1_500 // bytes of a prompt in an answer; as JSON at most six times that
	mostTold      = 32    // events of one outcome of Step.Watch
)

// mayKnow reports whether a caller may see a step: its own, or one of a descendant.
func (d *Domain) mayKnow(pid int64, s *schema.StepState) bool {
	return pid == kernel.Operator || pid == s.PID || kernel.Descends(d.processes, s.PID, pid)
}

// none is the error for steps that do not exist, or that the caller may not see.
func none(format string, args ...any) *fault.Fault { return fault.StepsNotFound.New(format, args...) }

// settled returns the shell, once the steps of what has ended are recorded; with now, also of what goes on.
func (d *Domain) settled(ctx context.Context, now bool) (Shell, error) {
	shell := d.shell.Load()
	if shell == nil {
		return nil, fault.KernelUnsupported.New("this kernel keeps no steps")
	}
	return *shell, (*shell).Settle(ctx, now)
}

// list answers Step.List.
func (d *Domain) list(call *kernel.Call, in *schema.StepListInput) (out schema.StepListOutput, _ error) {
	pid, limit := call.PID, defaultLimit
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	kernel.Compute(call, func(ctx context.Context) (schema.StepListOutput, error) {
		out := schema.StepListOutput{Steps: []schema.StepState{}, Trees: []schema.StepTree{}}
		shell, err := d.settled(ctx, false)
		if err != nil {
			return out, err
		}
		size := room
		if pid == kernel.Operator {
			for _, review := range shell.Reviews() {
				text, err := schema.Marshal(&review)
				if err != nil {
					return out, err
				}
				if size += len(text) + 1; size > kernel.MaxData/4 {
					break
				}
				out.Reviews = append(out.Reviews, review)
			}
			for _, tree := range shell.Trees() {
				text, err := schema.Marshal(&tree)
				if err != nil {
					return out, err
				}
				if size += len(text) + 1; size > kernel.MaxData/2 {
					break
				}
				out.Trees = append(out.Trees, tree)
			}
		}
		records := d.View().Of(said(in.Agent))
		if in.Path != nil {
			records = slices.DeleteFunc(records, func(r *Record) bool { return !d.mayKnow(pid, &r.StepState) })
			if in.Limit == nil {
				limit = 1
			}
			if records, err = shell.Changed(ctx, records, *in.Path, limit); err != nil {
				return out, err
			}
		}
		for _, r := range slices.Backward(records) {
			if len(out.Steps) == limit || in.Since != nil && r.Ended < *in.Since {
				break
			}
			if !d.mayKnow(pid, &r.StepState) || in.Until != nil && r.Ended > *in.Until {
				continue
			}
			text, err := schema.Marshal(&r.StepState)
			if err != nil {
				return out, err
			}
			if size += len(text) + 1; size > kernel.MaxData {
				out.More = true
				break
			}
			out.Steps = append(out.Steps, r.StepState)
		}
		slices.Reverse(out.Steps)
		return out, nil
	})
	return out, nil
}

func said(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// of returns the records of a name that a caller may see, or an error if there are none.
func (d *Domain) of(pid int64, agent string) ([]*Record, error) {
	list := d.View().Of(agent)
	list = slices.DeleteFunc(list, func(r *Record) bool { return !d.mayKnow(pid, &r.StepState) })
	if len(list) == 0 {
		return nil, none("%q has no steps", agent)
	}
	return list, nil
}

// get answers Step.Get.
func (d *Domain) get(call *kernel.Call, in *schema.StepGetInput) (out schema.StepGetOutput, _ error) {
	pid := call.PID
	kernel.Compute(call, func(ctx context.Context) (out schema.StepGetOutput, _ error) {
		shell, err := d.settled(ctx, false)
		if err != nil {
			return out, err
		}
		list, err := d.of(pid, in.Agent)
		if err != nil {
			return out, err
		}
		for _, r := range list {
			if r.Step == in.Step {
				out.Records = append(out.Records, r.StepState)
			}
		}
		if out.Records == nil {
			return out, none("there is no step %s:%d", in.Agent, in.Step)
		}
		if err := shell.Whole(ctx, out.Records); err != nil {
			return out, err
		}
		space := kernel.MaxData - room
		if p := out.Records[0].Prompt; p != nil {
			text, err := shell.Prompt(p.Digest)
			if err != nil {
				return out, err
			}
			if text != "" {
				text = clip.Text(text, longestPrompt)
				out.Prompt = &text
				encoded, err := schema.Marshal(&text)
				if err != nil {
					return out, err
				}
				space -= len(encoded)
			}
		}
		return out, Fit(out.Records, space)
	})
	return out, nil
}

// Fit shortens the lists of records until they take at most size bytes.
func Fit(list []schema.StepState, size int) error {
	for {
		text, err := schema.Marshal(&list)
		if err != nil {
			return fmt.Errorf("encode step: %w", err)
		}
		if len(text) <= size {
			return nil
		}
		longest, most := 0, -1
		for i := range list {
			if n := items(&list[i]); n > most {
				longest, most = i, n
			}
		}
		if most == 0 {
			return nil
		}
		s := &list[longest]
		for _, half := range []*[]string{&s.Programs.Items, &s.Connections.Items, &s.With} {
			*half = (*half)[:len(*half)/2]
		}
		s.Files.Items = s.Files.Items[:len(s.Files.Items)/2]
		s.Undoes = s.Undoes[:len(s.Undoes)/2]
	}
}

// items counts what Fit can leave out.
func items(s *schema.StepState) int {
	return len(s.Files.Items) + len(s.Programs.Items) + len(s.Connections.Items) + len(s.With) + len(s.Undoes)
}

// diff answers Step.Diff.
func (d *Domain) diff(call *kernel.Call, in *schema.StepDiffInput) (out schema.StepDiffOutput, _ error) {
	pid := call.PID
	kernel.Compute(call, func(ctx context.Context) (out schema.StepDiffOutput, _ error) {
		shell, err := d.settled(ctx, true)
		if err != nil {
			return out, err
		}
		ask := &Diff{Path: said(in.Path)}
		if in.From == nil && in.To == nil && pid == kernel.Operator && slices.ContainsFunc(shell.Reviews(), func(r schema.StepReview) bool { return r.Agent == in.Agent }) {
			ask.Review = in.Agent
		} else {
			list, err := d.of(pid, in.Agent)
			if err != nil {
				return out, err
			}
			if ask.Records = Chosen(list, in.From, in.To); len(ask.Records) == 0 {
				return out, none("%q has no such steps", in.Agent)
			}
		}
		if in.Offset != nil {
			ask.Offset = *in.Offset
		}
		text, more, err := shell.Diff(ctx, ask)
		out.Text, out.More = base64.StdEncoding.EncodeToString(text), more
		return out, err
	})
	return out, nil
}

// DiffPart is how many bytes of a diff an answer has.
const DiffPart = 10_000

// Chosen returns the records of a name from one step to another. Without either they are those of its latest run, without the second
// that of the first alone.
func Chosen(list []*Record, from, to *int64) []*Record {
	if from == nil && to == nil {
		return Latest(list)
	}
	first, last := int64(1), int64(0)
	if from != nil {
		first, last = *from, *from
	}
	if to != nil {
		last = *to
	}
	return slices.DeleteFunc(slices.Clone(list), func(r *Record) bool { return r.Step < first || r.Step > last })
}

// Latest returns the records of the latest run.
func Latest(list []*Record) []*Record {
	if len(list) == 0 {
		return nil
	}
	pid := list[len(list)-1].PID
	return slices.DeleteFunc(slices.Clone(list), func(r *Record) bool { return r.PID != pid })
}

// subscribe answers Step.Subscribe.
func (d *Domain) subscribe(call *kernel.Call, in *schema.StepSubscribeInput) (out schema.SuccessOutput, _ error) {
	if call.Message.Meta.IdempotencyKey != "" {
		return out, fault.WireInvalidInput.New(
			"Invalid input: a subscription is its connection's, and cannot be had again from another").WithFix("leave out metadata.idempotencyKey")
	}
	call.Follow(schema.StepWatch.With(&schema.StepWatchInput{Agent: in.Agent, Since: d.last}))
	return schema.SuccessOutput{Success: true}, nil
}

// watch answers Step.Watch: the records since the number in its input.
func (d *Domain) watch(call *kernel.Call, in *schema.StepWatchInput) (schema.SuccessOutput, error) {
	out := schema.SuccessOutput{Success: true}
	since := min(in.Since, d.last) // the journal may have lost some
	if since == d.last {
		call.Park(kernel.Forever)
		return out, nil
	}
	told := 0
	d.records.Ascend(since+1, func(number int64, r *Record) bool {
		since = number
		if in.Agent != nil && *in.Agent != r.Agent || !d.mayKnow(call.PID, &r.StepState) {
			return true
		}
		data, err := schema.Marshal(&r.StepState)
		if err != nil {
			panic(fmt.Sprintf("step: encode %s:%d: %v", r.Agent, r.Step, err)) // its values are valid JSON
		}
		call.Emit(kernel.Event{Type: schema.StepRecorded, Data: data})
		told++
		return told < mostTold
	})
	call.Follow(schema.StepWatch.With(&schema.StepWatchInput{Agent: in.Agent, Since: since}))
	return out, nil
}
