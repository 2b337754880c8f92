package image

// Backing is what the head of a qcow2 image names as its backing file; empty when it names none. told is false where the head does
// not say.
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

// HasBacking tells whether a head is that of a qcow2 image with a backing file, also where its name is not in the head.
func HasBacking(head []byte) bool {
	q := qcow2(head)
	return len(q) >= qcow2Short && has(q, 0, magicQcow2) && q.long(qcow2Backing) != 0
}
