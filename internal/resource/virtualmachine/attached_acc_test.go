//go:build acc

package virtualmachine_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Kubernetes mounts two claims by a CSI driver on host-a, its node: a guest writes to the disk.img of one, and to the files of the other.
func TestAccVolumeBinding_AttachedInGuest(t *testing.T) {
	l := acctest.Lab(t)
	provider := acctest.PodProvider(t, l, "attached-guest")
	node := acctest.Must(l.Node(t.Context()))(t)
	if err := node.StartCSI(t.Context()); err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{"data": t.TempDir(), "share": t.TempDir()}
	for name, folder := range folders {
		acctest.AddClaim(t, l, lab.FolderClaim("attached-guest", name, folder, acctest.StorageSize))
	}
	if err := os.WriteFile(filepath.Join(folders["share"], "hello"), []byte("hello from the claim"), 0o600); err != nil {
		t.Fatal(err)
	}
	binding := func(name, options string) string {
		return named(name, bound(fmt.Sprintf(`persistent_volume_claim = { namespace = "attached-guest", claim_name = %q, attach = true, %s }`, name, options),
			"write-exclusive", "host-a"))
	}
	console := acctest.NewConsole(t)
	script := sharing + fmt.Sprintf("\necho -n %q | dd of=/dev/vda bs=4096 seek=1 conv=fsync && echo WRITTEN\n", written)
	config := provider + binding("data", "create_disk_image = true") + binding("share", "shared_folder = true") + machine{
		disks: []string{told("data", "virtclaim_volume_binding.data")}, log: console.Path(),
		cmdline: "writes=file virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte(script)),
		more: `filesystems = { data = { volume = virtclaim_volume_binding.share.volume, driver = "9p" } }
  force_stop = true`,
	}.hcl(l)
	on := l.Hosts["host-a"]
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config,
				Check: func(*terraform.State) error {
					console.Await(t, "SHARED hello from the claim")
					console.Await(t, "WRITTEN")
					if text, err := os.ReadFile(filepath.Join(folders["share"], "file")); err != nil || string(text) != "from the guest\n" {
						t.Errorf("the guest wrote %q (%v)", text, err)
					}
					if got := acctest.InFile(t, filepath.Join(folders["data"], "disk.img"))(4096, len(written)); got != written {
						t.Errorf("disk.img has %q where the guest wrote", got)
					}
					return nil
				},
			},
			{ // nothing is mounted under a machine that may have opened the empty folder
				PreConfig: func() {
					acctest.Must(on.Run(t.Context(), "umount --lazy /run/libvirt/virtclaim/claim-*"))(t)
				},
				Config: config, ExpectError: regexp.MustCompile(`(?s)domain\s+web.*runs\s+with\s+what\s+is\s+mounted`),
			},
			{
				PreConfig: func() { acctest.Must(on.Virsh(t.Context(), "destroy", "web"))(t) },
				Config:    config,
				Check:     func(*terraform.State) error { console.AwaitN(t, "WRITTEN", 2); return nil },
			},
		},
	})
}
