package console

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// The elements and attributes of an SVG that the page gets. The style sheet of the page replaces the styles of the SVG.
var (
	drawn = []string{"svg", "defs", "marker", "g", "path", "rect", "text", "title"}
	kept  = []string{
		"class", "d", "height", "id", "marker-end", "markerHeight", "markerWidth", "orient", "refX", "refY", "rx", "viewBox", "width", "x", "y",
	}
)

// graph handles GET /api/graph?correlation=X: the SVG of a correlation as JSON elements [name, attributes, children], from which the
// page builds the SVG without parsing markup. The group of a call has the number of its entry as the attribute seq.
func (s *Server) graph(w http.ResponseWriter, r *http.Request) {
	in := &schema.EventGraphInput{CorrelationID: r.URL.Query().Get("correlation")}
	if in.CorrelationID == "" {
		refuse(w, http.StatusUnprocessableEntity, "console.input", "name a correlation")
		return
	}
	at, err := s.kernels.at(r)
	if err != nil {
		fail(w, err)
		return
	}
	out, err := ask(r.Context(), at, &at.slow, schema.EventGraph, in)
	if err != nil {
		fail(w, err)
		return
	}
	picture, err := elements(view.GraphSVG(out), out.Nodes)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "console.graph", "the graph cannot be shown: "+err.Error())
		return
	}
	answer(w, view.Object(nil).Integer("nodes", int64(len(out.Nodes))).Integer("more", out.More).Raw("picture", picture).Close())
}

// elements converts an SVG to JSON. The groups of the SVG are the nodes, in the same order.
func elements(svg string, nodes []schema.GraphNode) ([]byte, error) {
	var out []byte
	var depth, group int
	first := []bool{true}
	separate := func() {
		if !first[len(first)-1] {
			out = append(out, ',')
		}
		first[len(first)-1] = false
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && depth == 0 && out != nil:
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read picture: %w", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if !slices.Contains(drawn, e.Name.Local) {
				if err := d.Skip(); err != nil {
					return nil, fmt.Errorf("read picture: %w", err)
				}
				continue
			}
			var attributes view.Object
			for _, a := range e.Attr {
				if slices.Contains(kept, a.Name.Local) {
					attributes = attributes.Text(a.Name.Local, a.Value)
				}
			}
			if e.Name.Local == "g" {
				if group < len(nodes) && nodes[group].Seq != 0 {
					attributes = attributes.Integer("seq", nodes[group].Seq)
				}
				group++
			}
			separate()
			out = append(schema.AppendString(append(out, '['), e.Name.Local), ',')
			out = append(append(out, attributes.Close()...), ",["...)
			depth++
			first = append(first, true)
		case xml.EndElement:
			out = append(out, "]]"...)
			depth--
			first = first[:len(first)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(e)); text != "" && depth > 0 {
				separate()
				out = schema.AppendString(out, text)
			}
		}
	}
}

// search handles GET /api/search?query=WORDS: at most 100 calls that match, best match first.
func (s *Server) search(w http.ResponseWriter, r *http.Request) {
	most := int64(100)
	at, err := s.kernels.at(r)
	if err != nil {
		fail(w, err)
		return
	}
	out, err := ask(r.Context(), at, &at.slow, schema.EventSearch, &schema.EventSearchInput{Query: r.URL.Query().Get("query"), Limit: &most})
	if err != nil {
		fail(w, err)
		return
	}
	names := make(view.Names)
	found := make([]view.Entry, len(out.Events))
	for i := range out.Events {
		e := &out.Events[i]
		names[e.PID] = e.Agent
		found[i].AuditEntry = schema.AuditEntry{
			Success: e.Status == schema.StatusOK, PID: e.PID, Seq: e.Seq, Type: e.Type, Time: e.Metadata.Timestamp, ID: e.Metadata.ID,
			Correlation: schema.MaybeText(e.Metadata.Correlation), Causation: schema.MaybeText(e.Metadata.Causation), Claimed: e.Metadata.Claimed,
			Status: e.Status, Error: schema.MaybeText(e.Error), Code: e.Code, ErrorID: e.ErrorID, Request: e.Data,
		}
	}
	answer(w, view.Object(nil).Raw("rows", at.rows(found, names)).Close())
}
