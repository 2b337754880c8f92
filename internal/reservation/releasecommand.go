package reservation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// releaseCommand returns the kubectl command that removes records from a claim. If these are all records it removes the finalizer, too, and
// requires the present version of the claim, so that it fails if a record or finalizer was added since. Otherwise it requires only the
// claim's UID: of several commands, each must work after the others.
func releaseCommand(claim *corev1.PersistentVolumeClaim, gone ...Record) string {
	p := newPatch(claim)
	for _, r := range gone {
		p.remove(r.ID)
	}
	if len(gone) == len(Look(claim)) {
		p.removeFinalizer()
	} else {
		p.Metadata.ResourceVersion, p.Metadata.UID = "", string(claim.UID)
	}
	return p.command()
}

// quote quotes a word for a shell.
func quote(word string) string {
	plain := func(c rune) bool {
		return c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z'
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
