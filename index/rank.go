package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/promptware-os/pwos/schema"
)

// Corpus describes all documents, for ranking.
type Corpus struct {
	Documents int64
	Having    []int64 // number of documents with each phrase; nil: all phrases have the same weight
}

// FrequentAt is the frequency above which all phrases have the same weight, since counting their documents takes too
// long.
const FrequentAt = 20_000

// Ranked is a document with its score.
type Ranked struct {
	Document *Document
	Score    float64
}

// Parameters of BM25, as in SQLite: k1, the saturation of repeated words, and b, the weight of a document's length.
const (
	saturation = 1.2
	lengthPart = 0.75
)

// Rank orders documents that have all phrases by BM25, the best first, and of equal scores the newest
// first.
func Rank(docs []Document, phrases []schema.Phrase, corpus Corpus) []Ranked {
	length, total := make([]float64, len(docs)), 0.0
	for i := range docs {
		length[i] = float64(words(docs[i].Said) + words(docs[i].Data))
		total += length[i]
	}
	ranked := make([]Ranked, len(docs))
	for i := range docs {
		d := &docs[i]
		relative := length[i] * float64(len(docs)) / max(total, 1)
		ranked[i].Document = d
		for k := range phrases {
			times := float64(phrases[k].In(d.Said) + phrases[k].In(d.Data))
			ranked[i].Score += corpus.weight(k) * times * (saturation + 1) / (times + saturation*(1-lengthPart+lengthPart*relative))
		}
	}
	slices.SortFunc(ranked, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Document.Seq, a.Document.Seq))
	})
	return ranked
}

// weight returns the weight of phrase k: the fewer documents have it, the higher.
func (c *Corpus) weight(k int) float64 {
	if c.Having == nil {
		return 1
	}
	n, having := float64(max(c.Documents, c.Having[k])), float64(c.Having[k])
	return math.Log(1 + (n-having+0.5)/(having+0.5))
}

func words(w schema.Words) (n int) {
	for _, b := range w {
		if b == ' ' {
			n++
		}
	}
	return max(0, n-1)
}

// Fits reports whether a document has all phrases.
func Fits(d *Document, phrases []schema.Phrase) bool {
	return !slices.ContainsFunc(phrases, func(p schema.Phrase) bool { return p.In(d.Said) == 0 && p.In(d.Data) == 0 })
}
