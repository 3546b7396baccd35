package view

// Summaries returns the templates of each syscall that has a summary: of its object and of its result.
func Summaries() map[string][2]string {
	all := make(map[string][2]string, len(summaries))
	for typ, s := range summaries {
		all[typ] = [2]string{s.object, s.result}
	}
	return all
}
