package acctest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/podimage"
)

// PodProvider is the configuration of a provider of the lab with a volume image, which its pods run on the lab's node.
func PodProvider(t *testing.T, l *lab.Lab, owner string) string {
	t.Helper()
	Must(l.Node(t.Context()))(t)
	registry := Must(l.Registry(t.Context()))(t)
	index := Must(podimage.Build(t.Context(), "test", "amd64"))(t)
	image := Must(registry.PushImage(t.Context(), "virtclaim-volume", "test", index))(t)
	return strings.Replace(Provider(l, owner), "kubernetes = {", fmt.Sprintf("kubernetes = {\n    volume_image = %q,", image.Reference), 1)
}
