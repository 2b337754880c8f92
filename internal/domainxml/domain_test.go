package domainxml

import "testing"

// domain is the domain of an XML; nil if that is empty.
func domain(t *testing.T, text string) *Domain {
	t.Helper()
	if text == "" {
		return nil
	}
	d, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
