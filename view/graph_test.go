package view_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// wellFormed fails the test unless svg is one XML document without a script, and returns its texts.
func wellFormed(t *testing.T, svg string) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return texts
		case err != nil:
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Local == "script" || e.Name.Local == "a" || e.Name.Local == "image" {
				t.Fatalf("element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
					t.Fatalf("attribute %s", a.Name.Local)
				}
			}
		case xml.CharData:
			texts = append(texts, string(e))
		}
	}
}

func nodes(n int, label string) *schema.EventGraphOutput {
	g := new(schema.EventGraphOutput)
	for i := range n {
		g.Nodes = append(g.Nodes, schema.GraphNode{ID: fmt.Sprint("c", i), Kind: schema.NodeCall, Type: label, Agent: label, PID: 7, Seq: int64(i), Status: schema.StatusOK})
	}
	return g
}

func edge(from, to int, kind string) schema.GraphEdge {
	return schema.GraphEdge{From: fmt.Sprint("c", from), To: fmt.Sprint("c", to), Kind: kind}
}

// TestGraphSVG: any graph is drawn, also with cycles, invalid edges, and markup in its texts.
func TestGraphSVG(t *testing.T) {
	t.Parallel()
	hostile := "</text><script>alert(1)</script>\x00\u202e\" onload=x \xff&amp;]]>"
	cycle := nodes(3, hostile)
	cycle.Nodes[1].Error = hostile
	cycle.Nodes[2].Status = hostile
	cycle.Edges = []schema.GraphEdge{edge(0, 1, "caused"), edge(1, 2, hostile), edge(2, 0, "delivered"), edge(1, 1, "caused"), edge(1, 99, "caused"), edge(99, 1, "made")}
	texts := strings.Join(wellFormed(t, view.GraphSVG(cycle)), "\n")
	if !strings.Contains(texts, "</text><script>") {
		t.Errorf("a label is not an element of text:\n%s", texts)
	}

	wellFormed(t, view.GraphSVG(new(schema.EventGraphOutput)))

	many := nodes(2000, "Memory.Set")
	many.More = 17
	for i := 1; i < 2000; i++ {
		many.Edges = append(many.Edges, edge(i-1, i, "caused"), edge(0, i, "made"), edge(i, i/2, "delivered"))
	}
	if texts := wellFormed(t, view.GraphSVG(many)); !slices.Contains(texts, "… and 17 more") {
		t.Errorf("the picture ends in %q", texts[len(texts)-4:])
	}
}

// TestGraphSVGLayers: effects are right of their causes, and no boxes of a column overlap.
func TestGraphSVGLayers(t *testing.T) {
	t.Parallel()
	g := nodes(100, "Memory.Set")
	for i := 1; i < 100; i++ {
		g.Edges = append(g.Edges, edge((i-1)/3, i, "caused"))
	}
	var x, y [100]int
	svg := view.GraphSVG(g)
	for i, part := range strings.Split(svg, "<rect ")[1:] {
		if _, err := fmt.Sscanf(part, `x="%d" y="%d"`, &x[i], &y[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if i > 0 && x[i] <= x[(i-1)/3] {
			t.Errorf("node %d is at %d, its cause at %d", i, x[i], x[(i-1)/3])
		}
		for k := range i {
			if x[i] == x[k] && max(y[i]-y[k], y[k]-y[i]) < 38 {
				t.Errorf("nodes %d and %d overlap", i, k)
			}
		}
	}
}
