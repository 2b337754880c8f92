package volume

import "strings"

// BindingRef identifies an image's binding. As text it is <id>[/<instance>[/<namespace>/<claim>]]: volumes in older states have only the
// id, and those of storage that is named directly have no claim.
type BindingRef struct {
	// ID is the binding's id, the same for all bindings of one owner and name.
	ID string
	// Instance distinguishes a binding from the one that it replaces: see InstanceOf.
	Instance string
	// Namespace and Claim name the PersistentVolumeClaim.
	Namespace, Claim string
}

// InstanceOf returns the instance of the binding with that nonce. A recreated binding is another instance, so that the machines that use
// its volume are updated, and get back the storage that the destroy of the former binding detached.
func InstanceOf(nonce string) string { return nonce[:min(8, len(nonce))] }

// ParseBinding parses an Image's Binding.
func ParseBinding(text string) (b BindingRef) {
	parts := strings.SplitN(text, "/", 4)
	for i, to := range []*string{&b.ID, &b.Instance, &b.Namespace, &b.Claim} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	return b
}

func (b BindingRef) String() string {
	switch {
	case b.Instance == "":
		return b.ID
	case b.Claim == "":
		return b.ID + "/" + b.Instance
	}
	return strings.Join([]string{b.ID, b.Instance, b.Namespace, b.Claim}, "/")
}

// OtherInstance reports whether two images are known to belong to two instances of one binding.
func OtherInstance(a, b string) bool {
	x, y := ParseBinding(a), ParseBinding(b)
	return x.ID != "" && x.ID == y.ID && x.Instance != "" && y.Instance != "" && x.Instance != y.Instance
}
