package view

import (
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/schema"
)

// Found is a result of a search: a call with its score and its original JSON.
type Found struct {
	schema.FoundEvent

	Score float64
	Raw   schema.Value
}

// FoundHeader returns the names of the cells of Found.Cells.
func FoundHeader() []string { return append([]string{"score"}, EntryHeader()...) }

// Cells returns the score and the cells of the entry.
func (f *Found) Cells(style Paint) []string {
	e := Entry{AuditEntry: schema.AuditEntry{
		Success: f.Status == schema.StatusOK, Status: f.Status, PID: f.PID, Seq: f.Seq, Type: f.Type, Time: f.Metadata.Timestamp,
		ID: f.Metadata.ID, Error: schema.MaybeText(f.Error), Code: f.Code, ErrorID: f.ErrorID, Request: f.Data,
	}}
	return append([]string{strconv.FormatFloat(f.Score, 'f', 2, 64)}, e.Cells(Names{f.PID: f.Agent}, style)...)
}

// FoundIn returns the calls in an answer of Event.Search, each as JSON with its score.
func FoundIn(answer schema.Value) ([]Found, error) {
	out, err := AnswerAs[schema.EventSearchOutput](schema.EventSearch.Type, answer)
	if err != nil {
		return nil, err
	}
	members, _ := Members(answer)
	list, _ := Elements(members["events"])
	found := make([]Found, 0, len(list))
	for i, raw := range list {
		f := Found{FoundEvent: out.Events[i]}
		if i < len(out.Scores) {
			f.Score = out.Scores[i]
		}
		f.Raw = Object(slices.Clip(raw[:len(raw)-1])).Raw("score", schema.Value(strconv.FormatFloat(f.Score, 'g', -1, 64))).Close()
		found = append(found, f)
	}
	return found, nil
}
