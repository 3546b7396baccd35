package journal

// A Part is a directory that entries were archived in.
type Part struct {
	Dir    string
	First  uint64
	Anchor *Anchor // it stands in for this part and all before it: its last entry is the part's
}

// Reader returns a Reader of the part, from an entry on.
func (p *Part) Reader(fsys FS, from uint64) *Reader {
	return NewReader(fsys, p.Dir, ReaderOptions{From: from, Limit: func() uint64 { return p.Anchor.Seq }})
}

// Parts returns the directories with what an anchor stands in for, in the order of their entries. Each archive names the one
// before it. missing stands in for the entries whose directory is not at hand or cannot be read, and for all before them; nil:
// all are there. What is in a directory is not verified, and it may be gone as soon as Parts has returned.
func Parts(fsys FS, anchor *Anchor) (parts []Part, missing *Anchor) {
	if fsys == nil {
		fsys = OSFS{}
	}
	for anchor != nil {
		before, err := readAnchorFile(fsys, anchor.Archive, baseName)
		if err != nil {
			return parts, anchor
		}
		first := uint64(1)
		if before != nil {
			first = before.Seq + 1
		}
		there, err := listSegments(fsys, anchor.Archive)
		if err != nil || len(there) == 0 || there[0] != first || first > anchor.Seq {
			return parts, anchor
		}
		parts = append([]Part{{Dir: anchor.Archive, First: first, Anchor: anchor}}, parts...)
		anchor = before
	}
	return parts, nil
}

// PartOf returns the part with an entry, nil if that is not at hand.
func PartOf(fsys FS, anchor *Anchor, seq uint64) *Part {
	parts, _ := Parts(fsys, anchor)
	for i := range parts {
		if seq >= parts[i].First && seq <= parts[i].Anchor.Seq {
			return &parts[i]
		}
	}
	return nil
}
