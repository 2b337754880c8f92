package volumebinding

import (
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestExplainOpen_SaysHowQEMUAsks(t *testing.T) {
	refused := errors.New("CURL: Error opening file: The requested URL returned error: 403")
	for protocol, isWeb := range map[string]bool{"http": true, "https": true, "nbd": false, "": false} {
		err := explainOpen(refused, "host-a", volume.Image{Name: "/a.raw", Protocol: protocol, Servers: []volume.Server{{Host: "images.example"}}})
		if !errors.Is(err, refused) || !strings.Contains(err.Error(), "host host-a can't open /a.raw at images.example: CURL") {
			t.Errorf("%q: got %v", protocol, err)
		}
		if says := strings.Contains(err.Error(), "asks with HEAD") && strings.Contains(err.Error(), "source.url"); says != isWeb {
			t.Errorf("%q: got %v", protocol, err)
		}
	}
}
