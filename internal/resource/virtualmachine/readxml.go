package virtualmachine

import (
	"context"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// parsed are domains by their XML, so that XML that has not changed since it was last read is not parsed again. A nil map keeps none.
type parsed map[string]*domainxml.Domain

func (p parsed) read(text string) (*domainxml.Domain, error) {
	if d := p[text]; d != nil {
		return d, nil
	}
	d, err := domainxml.Read(text)
	if err == nil && p != nil {
		p[text] = d
	}
	return d, err
}

// readStored reads the stored definition as it is now.
func (m manager) readStored(ctx context.Context, uuid string) (*domainxml.Domain, error) {
	text, err := m.host.StoredXML(ctx, uuid)
	if err != nil {
		return nil, err
	}
	return m.parsed.read(text)
}

// readLive reads the running domain as it is now.
func (m manager) readLive(ctx context.Context, uuid string) (*domainxml.Domain, error) {
	text, err := m.host.LiveXML(ctx, uuid)
	if err != nil {
		return nil, err
	}
	return m.parsed.read(text)
}
