package journal

// A Part is a directory with archived entries.
type Part struct {
	Dir    string
	First  uint64
	Anchor *Anchor // its last entry is the part's last
}

// Reader returns a Reader of the part that starts at entry from.
func (p *Part) Reader(fsys FS, from uint64) *Reader {
	return NewReader(fsys, p.Dir, ReaderOptions{From: from, Limit: func() uint64 { return p.Anchor.Seq }})
}

// Parts returns the directories with the archived entries, in the order of their entries. Each archive names the one before
// it. missing is the anchor of the last entries whose directory is missing or unreadable; those before them are not
// returned either. It is nil if all are there. Parts does not verify the directories, and they may be removed at any time.
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

// PartOf returns the part with an entry, or nil if it is not available.
func PartOf(fsys FS, anchor *Anchor, seq uint64) *Part {
	parts, _ := Parts(fsys, anchor)
	for i := range parts {
		if seq >= parts[i].First && seq <= parts[i].Anchor.Seq {
			return &parts[i]
		}
	}
	return nil
}
