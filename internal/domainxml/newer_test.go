package domainxml

import (
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A domain of a newer provider is ours, and not understood: no one may take it for a foreign one, or write its metadata.
func TestRead_NewerProvider(t *testing.T) {
	const v1 = `<machine xmlns="https://virtclaim.io/libvirt/domain/1" phase="ready"/>`
	for metadata, refused := range map[string]bool{
		v1: false,
		`<machine xmlns="https://example.com/domain/2"/>` + v1:                                   false,
		`<machine xmlns="https://virtclaim.io/libvirt/domain/2" phase="ready"/>`:                 true,
		`<v:other xmlns:v="https://virtclaim.io/libvirt/domain/10"/>`:                            true,
		`<content xmlns="https://virtclaim.io/libvirt/domain/2"/>`:                               true,
		`<content xmlns="https://virtclaim.io/libvirt/domain/"/>`:                                true,
		v1 + `<machine xmlns="https://virtclaim.io/libvirt/domain/2"/>`:                          true,
		`<a xmlns="https://example.com/"><b xmlns="https://virtclaim.io/libvirt/domain/2"/></a>`: false,
	} {
		text := "<domain><name>web</name><metadata>" + metadata + "</metadata></domain>"
		_, err := Read(text)
		_, _, journal := ParseJournal(text)
		for _, err := range []error{err, journal} {
			if errors.Is(err, newer.Err) != refused || refused && !strings.Contains(err.Error(), "domain web") {
				t.Errorf("%s: %v", metadata, err)
			}
		}
		all, err := ReadDefinitions("web", "1", text, "", text)
		if err != nil || errors.Is(all.Stored.Newer(), newer.Err) != refused || errors.Is(all.Live.Newer(), newer.Err) != refused {
			t.Errorf("the definitions with %s: %v", metadata, err)
		}
		if err == nil && refused && setMetadata(all.Stored.xml, machineMetadata{}) == nil {
			t.Errorf("%s was replaced", metadata)
		}
	}
}

func TestMayReference(t *testing.T) {
	d := domain(t, `<domain><name>web</name><metadata><a b="/ssd/root" c='nbd://storage/data?x'>&lt;source name=&quot;iqn:a/1&quot;/&gt;</a>`+
		`<d>pool/x&amp;y</d></metadata></domain>`)
	for name, want := range map[string]bool{"/ssd/root": true, "pool/x&y": true, "/ssd/roo": false, "ssd": false, "source": false} {
		if got := d.MayReference(volume.Image{Name: name}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
