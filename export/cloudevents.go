package export

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/promptware-os/pwos/schema"
)

// CloudEvents is the format of the CloudEvents specification 1.0: one structured event a line. The id is that of the
// record, the source names the journal's instance, and data is the entry.
var CloudEvents = Format{Begin: `{"specversion":"1.0","id":"`, Line: cloudEventLine, At: cloudEventAt}

// Prefixes of the source and the type of an event.
const (
	sourcePrefix = "urn:pwos:"
	typePrefix   = "pwos."
)

// Content types of a record.
const (
	jsonType       = "application/json"
	cloudEventType = cloudevents.ApplicationCloudEventsJSON
)

func cloudEventLine(r *Record) ([]byte, error) {
	e, err := cloudEvent(r)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if err := cloudevents.WriteJson(e, &line); err != nil {
		return nil, fmt.Errorf("write record %s as an event: %w", r.ID(), err)
	}
	return line.Bytes(), nil
}

// cloudEvent converts a record to an event. correlationid and causationid are the names of the specification's
// extension for correlation; causationclaimed marks a cause that only the message names.
func cloudEvent(r *Record) (*cloudevents.Event, error) {
	data, err := schema.Marshal(&r.Entry)
	if err != nil {
		return nil, fmt.Errorf("write record %s as an event: %w", r.ID(), err)
	}
	e := cloudevents.New(cloudevents.CloudEventsVersionV1)
	e.SetID(r.ID())
	e.SetSource(sourcePrefix + r.At.Instance)
	e.SetType(typePrefix + r.Entry.Type)
	e.SetSubject(fmt.Sprintf("pid/%d", r.Entry.PID))
	e.SetTime(time.UnixMilli(r.Entry.Time).UTC())
	for name, value := range map[string]schema.MaybeText{"correlationid": r.Entry.Correlation, "causationid": r.Entry.Causation} {
		if value != "" {
			e.SetExtension(name, string(value))
		}
	}
	if r.Entry.Claimed {
		e.SetExtension("causationclaimed", true)
	}
	e.SetDataContentType(jsonType)
	e.DataEncoded = data
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("write record %s as an event: %w", r.ID(), err)
	}
	return &e, nil
}

// cloudEventAt returns the position in a line of cloudEventLine.
func cloudEventAt(line []byte) (Position, error) {
	var e cloudevents.Event
	if err := cloudevents.ReadJson(&e, bytes.NewReader(line)); err != nil {
		return Position{}, err
	}
	at, err := ParsePosition(e.ID())
	switch {
	case err != nil:
		return Position{}, err
	case e.Source() != sourcePrefix+at.Instance || !strings.HasPrefix(e.Type(), typePrefix):
		return Position{}, errors.New("it is an event of another source")
	}
	return at, nil
}
