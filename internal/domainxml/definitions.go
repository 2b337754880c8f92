package domainxml

import "fmt"

// Definitions are the XML of a domain, each parsed once; nil where the domain has none.
type Definitions struct {
	Name, UUID string
	// Live is the running domain, Saved its managed save, Stored its stored definition.
	Live, Saved, Stored *Domain
}

// ReadDefinitions parses the XML of a domain; empty where it has none. Unlike by Read, a domain of a newer provider is read as far as it
// can be: it must not keep the others of its host from being read.
func ReadDefinitions(name, uuid, live, saved, stored string) (d Definitions, err error) {
	d = Definitions{Name: name, UUID: uuid}
	for _, from := range []struct {
		text string
		to   **Domain
	}{{live, &d.Live}, {saved, &d.Saved}, {stored, &d.Stored}} {
		if from.text == "" {
			continue
		}
		if *from.to, err = read(from.text); err != nil {
			return d, fmt.Errorf("domain %s: %w", name, err)
		}
	}
	return d, nil
}
