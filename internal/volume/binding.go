package volume

import "strings"

// BindingRef is what an image says of its binding. As text it is <id>[/<instance>[/<namespace>/<claim>]]: volumes of older
// states have the id alone, those of storage that is named directly no claim.
type BindingRef struct {
	// ID is the binding's id, the same for all of one owner and name.
	ID string
	// Instance tells a binding from the one that it replaces: see InstanceOf.
	Instance string
	// Namespace and Claim name the PersistentVolumeClaim.
	Namespace, Claim string
}

// InstanceOf is the instance of the binding with that nonce. A binding that was made anew is another instance, so that what
// uses its volume is updated and takes back what was taken from it when the one before was destroyed.
func InstanceOf(nonce string) string { return nonce[:min(8, len(nonce))] }

// ParseBinding reads an Image's Binding.
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

// OtherInstance tells whether two images are known to come from two instances of one binding.
func OtherInstance(a, b string) bool {
	x, y := ParseBinding(a), ParseBinding(b)
	return x.ID != "" && x.ID == y.ID && x.Instance != "" && y.Instance != "" && x.Instance != y.Instance
}
