package virtualmachine

// scaled is the size that a refresh shows: said is the one in state, stored the one in the persistent definition, and drift the running
// machine's, which is 0 if it equals stored. It is the running one if stored equals said. Otherwise an update was interrupted, or the
// definition was changed outside of Terraform: then the size is unknown, so that any plan updates both.
func (m model) scaled(said, stored, drift uint) (now uint, known bool) {
	switch {
	case drift == 0 || m.isImport():
		return stored, true
	case said == stored:
		return drift, true
	}
	return 0, false
}
