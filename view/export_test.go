package view

// Deeds are the templates of the syscalls that have some.
func Deeds() map[string][2]string {
	all := make(map[string][2]string, len(deeds))
	for typ, d := range deeds {
		all[typ] = [2]string{d.asked, d.answered}
	}
	return all
}
