package jsontype_test

import (
	"github.com/promptware-os/pwos/schema/jsontype"
)

// The types of this file have every shape and bound of the data of syscalls.

type shapeCommon struct {
	PID  *int64 `json:"pid,omitzero" min:"0" doc:"The process."`
	Tick int64  `json:"tick,omitzero" min:"0" doc:"The tick."`
}

type shapeInner struct {
	Name  string   `json:"name" minlen:"1" maxlen:"3" doc:"A name."`
	Score float64  `json:"score,omitzero" min:"-1.5" max:"1e21" doc:"A score."`
	Tags  []string `json:"tags,omitzero" enum:"a bb ccc" doc:"Tags."`
}

type shapeTexts struct {
	Any     string  `json:"any" doc:"Any text."`
	NotNone string  `json:"not_none" minlen:"1" doc:"Text."`
	Short   string  `json:"short,omitzero" maxlen:"2" doc:"Text."`
	Both    string  `json:"both,omitzero" minlen:"2" maxlen:"5" doc:"Text."`
	Word    string  `json:"word,omitzero" enum:"low high very-high" doc:"A word."`
	Pointer *string `json:"pointer,omitzero" minlen:"3" doc:"Text."`

	Maybe jsontype.MaybeText `json:"maybe,omitzero" maxlen:"3" doc:"Text."`
}

type shapeNumbers struct {
	Integer  int64    `json:"integer" doc:"An integer."`
	Between  int64    `json:"between,omitzero" min:"-3" max:"12" doc:"An integer."`
	AtMost   *int64   `json:"at_most,omitzero" max:"-7" doc:"An integer."`
	Number   float64  `json:"number" doc:"A number."`
	Amount   float64  `json:"amount,omitzero" min:"0" doc:"A number."`
	Ratio    float64  `json:"ratio,omitzero" min:"0" max:"0.1" doc:"A number."`
	Exactly  *float64 `json:"exactly,omitzero" min:"2.5" max:"2.5" doc:"A number."`
	Negative float64  `json:"negative,omitzero" max:"-1e-7" doc:"A number."`
}

type shapeNested struct {
	shapeCommon
	Flag    bool                        `json:"flag" doc:"A flag."`
	Maybe   *bool                       `json:"maybe,omitzero" doc:"A flag."`
	Raw     jsontype.Value              `json:"raw" doc:"Any value."`
	RawToo  jsontype.Value              `json:"raw_too,omitzero" doc:"Any value."`
	Object  shapeInner                  `json:"object" doc:"An object."`
	Pointer *shapeInner                 `json:"pointer,omitzero" doc:"An object."`
	Objects []shapeInner                `json:"objects,omitzero" doc:"Objects."`
	Matrix  [][]int64                   `json:"matrix,omitzero" min:"0" max:"9" doc:"Rows."`
	Values  []jsontype.Value            `json:"values,omitzero" doc:"Any values."`
	Amounts map[string]float64          `json:"amounts,omitzero" min:"0" doc:"Amounts by name."`
	Lists   map[string][]string         `json:"lists,omitzero" maxlen:"2" doc:"Lists by name."`
	Inner   map[string]shapeInner       `json:"inner,omitzero" doc:"Objects by name."`
	Changes map[string]jsontype.Value   `json:"changes,omitzero" doc:"Any values by name."`
	Deep    map[string]map[string]int64 `json:"deep,omitzero" doc:"Integers by two names."`
}

type shapeNone struct{}

// shapes has the types by name. Some are lists, because data need not be an object.
func shapes() map[string]*jsontype.Type {
	return map[string]*jsontype.Type{
		"texts":      jsontype.Of[shapeTexts](),
		"numbers":    jsontype.Of[shapeNumbers](),
		"nested":     jsontype.Of[shapeNested](),
		"none":       jsontype.Of[shapeNone](),
		"list":       jsontype.Of[[]shapeInner](),
		"dictionary": jsontype.Of[map[string][]int64](),
		"text":       jsontype.Of[string](),
		"flag":       jsontype.Of[bool](),
		"anything":   jsontype.Of[jsontype.Value](),
	}
}
