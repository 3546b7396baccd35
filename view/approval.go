package view

import (
	"strconv"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// ApprovalCells are a question as people read it.
func ApprovalCells(s *schema.ApprovalState, now time.Time) []string {
	return []string{s.ID, s.State, ApprovalAgent(s), Escaped(s.Rule), leftOf(s, now), ApprovalCall(s)}
}

// ApprovalAgent is whose call it is.
func ApprovalAgent(s *schema.ApprovalState) string {
	return Escaped(s.Agent) + " (" + strconv.FormatInt(s.PID, 10) + ")"
}

// leftOf is how long there is for an answer, or how long what was approved may be done.
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

// ApprovalCall is what is to be called, as people read it.
func ApprovalCall(s *schema.ApprovalState) string {
	text := s.Type + " " + string(s.Data)
	if s.Exhausted != "" {
		text += " (more " + s.Exhausted + " than its budget has left)"
	}
	if s.Advisory {
		text += " (advisory)"
	}
	return Escaped(text)
}
