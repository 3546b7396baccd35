package imports

// Package is a row of the table of layers.
type Package struct {
	// Path is a pattern below the module's root: a folder, "folder/*" for the
	// folders right below it, "folder/..." for it and all below it. The first row
	// that fits a package is its row.
	Path string
	// May lists patterns of our packages that its files may import.
	May []string
	// Tests lists what its test files may import beyond that. All test files
	// may import what exists for tests: internal/... and test/....
	Tests []string
	// ForTests says that nothing but tests imports it.
	ForTests bool
	// Reason says what breaks when the rule is broken.
	Reason string
}

// Library is a row of the table of dependencies. Of the rows that fit an import
// the one with the longest path decides.
type Library struct {
	// Path is an import path; what lies below it is meant too.
	Path string
	// Only lists patterns of our packages that may import it; none: nobody.
	Only []string
	// Tests lets any test file import it.
	Tests  bool
	Reason string
}

// Denied is a row of the table of the standard library, which is open but for these.
type Denied struct {
	// Path is an import path; what lies below it is meant too.
	Path string
	// In lists patterns of our packages that may not import it, But those of them that may.
	In, But []string
	// Tests lets test files import it all the same.
	Tests  bool
	Reason string
}

// Tables is a set of rules. House returns ours.
type Tables struct {
	Packages  []Package
	Libraries []Library
	Denied    []Denied
	// Pure lists patterns of packages that start no goroutine and read no clock.
	Pure []string
}

// House returns the rules of this module.
func House() *Tables {
	return &Tables{
		Packages:  packages(),
		Libraries: libraries(),
		Denied:    denied(),
		Pure:      pure(),
	}
}
