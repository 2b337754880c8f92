package image

// Backing returns the backing file in the header of a qcow2 image; empty if there is none. told is false if head does not contain its name.
func Backing(head []byte) (name string, told bool) {
	q := qcow2(head)
	if len(q) < qcow2Short || !has(q, 0, magicQcow2) {
		return "", false
	}
	at, size, all := q.long(qcow2Backing), uint64(q.word(qcow2BackingSize)), uint64(len(q))
	switch {
	case at == 0:
		return "", true
	case at > all || size > all-at:
		return "", false
	}
	return string(q[at : at+size]), true
}

// HasBacking reports whether head is that of a qcow2 image with a backing file, also if it does not contain the file's name.
func HasBacking(head []byte) bool {
	q := qcow2(head)
	return len(q) >= qcow2Short && has(q, 0, magicQcow2) && q.long(qcow2Backing) != 0
}

// IsWholeHeader reports whether the header of a qcow2 image ends in head: its extensions, and the name of its backing file.
func IsWholeHeader(head []byte) bool {
	_, _, err := qcow2(head).extensions()
	_, told := Backing(head)
	return err == nil && told
}
