package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// TokenTable formats the token in the answer of a Capability.Grant or Capability.Get, one line for each part.
func TokenTable(data schema.Value) (*Table, error) {
	t := new(Table)
	members, _ := Members(data)
	if members["held"] == nil { // Capability.Grant returns only the token
		out, err := AnswerAs[schema.GrantOutput](schema.CapabilityGrant.Type, data)
		if err != nil {
			return nil, err
		}
		tokenRows(t, &out.Token)
		for _, resource := range slices.Sorted(maps.Keys(out.ResourceQuotas)) {
			t.Row("quota of "+Escaped(resource), Units(out.ResourceQuotas[resource]))
		}
		return t, nil
	}
	out, err := AnswerAs[schema.CapabilityGetOutput](schema.CapabilityGet.Type, data)
	if err != nil {
		return nil, err
	}
	tokenRows(t, &out.Token)
	if !slices.Equal(out.Effective.AllowedSyscalls, out.AllowedSyscalls) {
		t.Row("effective now", strings.Join(out.Effective.AllowedSyscalls, " "))
	}
	for _, resource := range resourcesOf(&out) {
		t.Row("quota of "+Escaped(resource), quotaText(&out, resource))
	}
	return t, nil
}

// tokenRows returns the rows of a token without its quotas.
func tokenRows(t *Table, token *schema.Token) {
	t.Row("pid", fmt.Sprint(token.PID))
	granter := "the operator"
	if token.GrantedBy != 0 {
		granter = fmt.Sprintf("pid %d", token.GrantedBy)
	}
	if len(token.Grants) > 1 {
		granter += " and the operator"
	}
	t.Row("granted by", granter)
	t.Row("may call", strings.Join(token.AllowedSyscalls, " "))
	t.Row("expires", Expiry(token.ExpiresAtTick))
	if token.HTTP != nil {
		t.Row("may fetch from", fetchText(token.HTTP))
	}
}

// fetchText describes the servers from which a token's holder may fetch.
func fetchText(grant *schema.HTTPGrant) string {
	text := strings.Join(grant.Hosts, " ")
	if grant.Plain {
		text += " (http: too)"
	}
	if grant.Open {
		text += " (with sealed headers)"
	}
	return text
}

// Expiry describes when a grant expires.
func Expiry(tick *int64) string {
	if tick == nil {
		return "never"
	}
	return fmt.Sprintf("after tick %d", *tick)
}

// resourcesOf returns the resources of a token's quotas, and those that its holder holds without one.
func resourcesOf(token *schema.CapabilityGetOutput) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(token.ResourceQuotas)), maps.Keys(token.Held))
	slices.Sort(names)
	return slices.Compact(names)
}

// quotaText formats the usage and limit of a resource, with the effective limit and the share of grants if they matter.
func quotaText(token *schema.CapabilityGetOutput, resource string) string {
	text := Units(token.Held[resource].Float()) + "/" + Units(token.ResourceQuotas[resource])
	if now := token.Effective.ResourceQuotas[resource]; now != token.ResourceQuotas[resource] {
		text += " (" + Units(now) + " effective)"
	}
	if below := token.HeldBelow[resource].Float(); below > 0 {
		text += " (" + Units(below) + " held by its grants)"
	}
	return text
}

// QuotaTexts describes the usage of each resource for which a token has a quota.
func QuotaTexts(token *schema.CapabilityGetOutput) string {
	var texts []string
	for _, resource := range resourcesOf(token) {
		texts = append(texts, Escaped(resource)+" "+quotaText(token, resource))
	}
	return strings.Join(texts, ", ")
}

// ApprovalCells returns the cells of an approval.
func ApprovalCells(s *schema.ApprovalState, now time.Time) []string {
	return []string{s.ID, s.State, ApprovalAgent(s), Escaped(s.Rule), leftOf(s, now), ApprovalCall(s)}
}

// ApprovalAgent returns the name and PID of the agent that made the call.
func ApprovalAgent(s *schema.ApprovalState) string {
	if s.PID == 0 { // the kernel itself asks
		return Escaped(s.Agent)
	}
	return Escaped(s.Agent) + " (" + strconv.FormatInt(s.PID, 10) + ")"
}

// putsBack describes the call of a question about files that were set aside.
func putsBack(s *schema.ApprovalState) string {
	members, _ := Members(s.Data)
	paths, _ := As[[]string](members["paths"])
	count, _ := As[int64](members["count"])
	step, _ := As[int64](members["step"])
	tree, _ := Text(members["tree"])
	const most = 3
	text := "put back " + strings.Join(paths[:min(len(paths), most)], ", ")
	if more := count - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s in %s, set aside by %s", text, tree, StepName(s.Agent, step))
}

// leftOf returns the time left to answer a question, or to use an approval.
func leftOf(s *schema.ApprovalState, now time.Time) string {
	end := s.Expires
	switch s.State {
	case schema.ApprovalUsed, schema.ApprovalExpired:
		return ""
	case schema.ApprovalApproved:
		end = max(end, s.Until)
	}
	return max(0, time.UnixMilli(end).Sub(now)).Round(time.Second).String()
}

// ApprovalCall describes the call of an approval.
func ApprovalCall(s *schema.ApprovalState) string {
	text := s.Type + " " + string(s.Data)
	if s.PID == 0 && s.Type == schema.StepUndo.Row().Type {
		text = putsBack(s)
	}
	if s.Exhausted != "" {
		text += " (more " + s.Exhausted + " than its budget has left)"
	}
	if s.Advisory {
		text += " (advisory)"
	}
	if binding := Binding(s); binding != "" {
		text += " (" + binding + ")"
	}
	return Escaped(text)
}
