package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// TokenTable is one token, that of Capability.Grant or that of Capability.Get, a line for each thing that it says.
func TokenTable(data schema.Value) (*Table, error) {
	t := new(Table)
	members, _ := Members(data)
	if members["held"] == nil { // Capability.Grant shows the token alone
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

// tokenRows are what a token says but for its quotas.
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

// fetchText says what a token's holder may fetch.
func fetchText(grant *schema.HTTPGrant) string {
	text := strings.Join(grant.Hosts, " ")
	if grant.Plain {
		text += " (http: too)"
	}
	if grant.Open {
		text += " (sealed headers are opened)"
	}
	return text
}

// Expiry says until when a grant holds.
func Expiry(tick *int64) string {
	if tick == nil {
		return "never"
	}
	return fmt.Sprintf("after tick %d", *tick)
}

// resourcesOf names what a token has a quota of, or its holder holds in spite of it.
func resourcesOf(token *schema.CapabilityGetOutput) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(token.ResourceQuotas)), maps.Keys(token.Held))
	slices.Sort(names)
	return slices.Compact(names)
}

// quotaText is what is held of a resource, the limit, and what of that is left and held by the process's own grants.
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

// QuotaTexts is what is held of all resources that a token has a quota of.
func QuotaTexts(token *schema.CapabilityGetOutput) string {
	var texts []string
	for _, resource := range resourcesOf(token) {
		texts = append(texts, Escaped(resource)+" "+quotaText(token, resource))
	}
	return strings.Join(texts, ", ")
}
