package view

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// Sizes of a drawn graph, in pixels.
const (
	boxWidth, boxHeight = 216, 38
	columnGap, rowGap   = 56, 14
	margin              = 16
	maxLabel            = 30 // characters
)

// drawing is a graph with the positions of its nodes. These are in columns: causes are left of their effects.
type drawing struct {
	graph  *schema.EventGraphOutput
	ahead  [][]int // successors of each node, without edges that would close a cycle
	before [][]int // predecessors of each node
	column []int
	y      []int // upper edge of the node's box
	width  int
	height int
}

// GraphSVG draws a graph as a self-contained SVG, without scripts or external resources.
func GraphSVG(g *schema.EventGraphOutput) string {
	d := &drawing{graph: g}
	d.connect()
	d.layer()
	d.place()
	return d.svg()
}

// connect sets ahead and before. It leaves out edges that close a cycle.
func (d *drawing) connect() {
	index := make(map[string]int, len(d.graph.Nodes))
	for i := range d.graph.Nodes {
		index[d.graph.Nodes[i].ID] = i
	}
	all := make([][]int, len(d.graph.Nodes))
	for _, e := range d.graph.Edges {
		from, known := index[e.From]
		to, too := index[e.To]
		if known && too && from != to && !slices.Contains(all[from], to) {
			all[from] = append(all[from], to)
		}
	}
	d.ahead, d.before = make([][]int, len(all)), make([][]int, len(all))
	const unseen, open, closed = 0, 1, 2
	state, next := make([]int, len(all)), make([]int, len(all))
	for root := range all {
		for walk := []int{root}; len(walk) > 0 && state[walk[0]] != closed; {
			at := walk[len(walk)-1]
			state[at] = open
			if next[at] == len(all[at]) {
				state[at], walk = closed, walk[:len(walk)-1]
				if len(walk) == 0 {
					break
				}
				continue
			}
			to := all[at][next[at]]
			next[at]++
			if state[to] == open {
				continue
			}
			d.ahead[at], d.before[to] = append(d.ahead[at], to), append(d.before[to], at)
			if state[to] == unseen {
				walk = append(walk, to)
			}
		}
	}
}

// layer puts each node into the column after that of its last predecessor.
func (d *drawing) layer() {
	d.column = make([]int, len(d.ahead))
	waits := make([]int, len(d.ahead))
	var ready []int
	for i := range d.before {
		if waits[i] = len(d.before[i]); waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		at := ready[0]
		ready = ready[1:]
		for _, to := range d.ahead[at] {
			d.column[to] = max(d.column[to], d.column[at]+1)
			if waits[to]--; waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
}

// place puts each node of a column at the middle of its predecessors, without overlap.
func (d *drawing) place() {
	d.y = make([]int, len(d.ahead))
	var columns [][]int
	for i, c := range d.column {
		for len(columns) <= c {
			columns = append(columns, nil)
		}
		columns[c] = append(columns[c], i)
	}
	middle := make([]int, len(d.ahead))
	for c, nodes := range columns {
		for _, i := range nodes {
			sum := 0
			for _, from := range d.before[i] {
				sum += d.y[from]
			}
			middle[i] = sum / max(1, len(d.before[i]))
		}
		slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
		y := 0
		for _, i := range nodes {
			d.y[i] = max(y, middle[i])
			y = d.y[i] + boxHeight + rowGap
			d.height = max(d.height, d.y[i]+boxHeight)
		}
		d.width = c*(boxWidth+columnGap) + boxWidth
	}
}

func (d *drawing) x(i int) int { return d.column[i] * (boxWidth + columnGap) }

// graphStyle is the style of a graph, for light and dark color schemes.
const graphStyle = `text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}.s{font-size:10px;fill:#59636e}
rect{fill:#f6f8fa;stroke:#8c959f}.process rect{fill:#ddf4ff;stroke:#54aeff}.denied rect,.failed rect{fill:#ffebe9;stroke:#cf222e}
.running rect,.unknown rect{fill:#fff8c5;stroke:#bf8700}path{fill:none;stroke:#8c959f}path.mail{stroke-dasharray:4 3}path.claim{stroke-dasharray:1 4}marker path{fill:#8c959f;stroke:none}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}rect{fill:#161b22;stroke:#6e7681}.process rect{fill:#0c2d6b;stroke:#388bfd}
.denied rect,.failed rect{fill:#490202;stroke:#f85149}.running rect,.unknown rect{fill:#3b2300;stroke:#d29922}path{stroke:#6e7681}marker path{fill:#6e7681}}`

func (d *drawing) svg() string {
	height := d.height
	if d.graph.More > 0 {
		height += boxHeight
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="%d %d %[1]d %[2]d" role="img" aria-label="%[5]d calls and processes">`,
		d.width+2*margin, height+2*margin, -margin, -margin, len(d.graph.Nodes))
	fmt.Fprintf(&b, "\n<style>%s</style>\n", graphStyle)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>` + "\n")
	d.edges(&b)
	for i := range d.graph.Nodes {
		d.node(&b, i)
	}
	if d.graph.More > 0 {
		fmt.Fprintf(&b, "<text x=\"0\" y=\"%d\">… and %d more</text>\n", d.height+boxHeight/2+rowGap, d.graph.More)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// edges draws the edges as curves, including those that close a cycle.
func (d *drawing) edges(b *strings.Builder) {
	index := make(map[string]int, len(d.graph.Nodes))
	for i := range d.graph.Nodes {
		index[d.graph.Nodes[i].ID] = i
	}
	for _, e := range d.graph.Edges {
		from, known := index[e.From]
		to, too := index[e.To]
		if !known || !too {
			continue
		}
		x1, y1, x2, y2 := d.x(from)+boxWidth, d.y[from]+boxHeight/2, d.x(to), d.y[to]+boxHeight/2
		bend, class := max(columnGap/2, (x2-x1)/2), ""
		if d.column[to] <= d.column[from] {
			bend = columnGap
		}
		switch e.Kind {
		case schema.EdgeDelivered:
			class = ` class="mail"`
		case schema.EdgeClaimed:
			class = ` class="claim"`
		}
		fmt.Fprintf(b, "<path%s d=\"M%d %dC%d %d %d %d %d %d\" marker-end=\"url(#tip)\"><title>%s</title></path>\n",
			class, x1, y1, x1+bend, y1, x2-bend, y2, x2, y2, xml(e.Kind))
	}
}

// node draws one node: its name, and below it the time and the duration.
func (d *drawing) node(b *strings.Builder, i int) {
	n := &d.graph.Nodes[i]
	class, below := n.Status, ""
	if n.Kind == schema.NodeProcess {
		class, below = schema.NodeProcess, "process "+strconv.FormatInt(n.PID, 10)
	} else {
		below = fmt.Sprintf("%d · %s · %s", n.Seq, time.UnixMilli(n.Time).UTC().Format("15:04:05.000"), microseconds(n.LatencyUS))
	}
	if !slices.Contains([]string{"process", schema.StatusOK, schema.StatusDenied, schema.StatusFailed, schema.StatusRunning, schema.StatusUnknown}, class) {
		class = schema.StatusUnknown
	}
	x, y := d.x(i), d.y[i]
	title := n.Label()
	if n.Error != "" {
		title += ": " + n.Error
	}
	fmt.Fprintf(b, `<g class="%s"><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="6"/>`, class, xml(title), x, y, boxWidth, boxHeight)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text><text class="s" x="%[1]d" y="%[4]d">%[5]s</text></g>`+"\n",
		x+10, y+16, xml(shortened(Escaped(n.Label()), maxLabel)), y+30, xml(below))
}

// xml escapes text for an XML document.
func xml(text string) string { return html.EscapeString(strings.ToValidUTF8(Escaped(text), "\uFFFD")) }
