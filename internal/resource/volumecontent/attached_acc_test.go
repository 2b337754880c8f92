//go:build acc

package volumecontent_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A claim that Kubernetes mounts on a host is filled there: the pod that keeps it mounted does not use it.
func TestAccVolumeContent_AttachedClaim(t *testing.T) {
	l := acctest.Lab(t)
	const size = 3 << 20
	folder := t.TempDir()
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "content", Name: "attached", Filesystem: true, Size: acctest.StorageSize, NodeAffinity: onNode("host-a"),
		Source: &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}},
	})
	store := acctest.Storage{Stored: acctest.InFile(t, filepath.Join(folder, "disk.img"))}
	source := `persistent_volume_claim = { namespace = "content", claim_name = "attached", attach = true, create_disk_image = true }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.PodProvider(t, l, "content") + filled(source, fmt.Sprintf("file = { path = %q }", imageOf(t, "an image", size)), "", "host-a"),
			Check:  func(*terraform.State) error { return stored(store, "an image", size) },
		}},
	})
}
