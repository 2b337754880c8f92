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
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// sharing reads a file of the shared folder, and writes one that has the name in the kernel's parameter.
const sharing = `
for module in 9pnet_virtio 9p; do load $module; done
mkdir /share
mount -t 9p -o trans=virtio,version=9p2000.L data /share && echo "SHARED $(cat /share/hello)"
for word in $(cat /proc/cmdline); do case $word in writes=*) echo "from the guest" >/share/${word#writes=} && sync && echo WROTE ;; esac; done
`

// A guest reads and writes the files of a claim. While it has the folder exclusively, no other machine gets it, whether it is of this
// configuration or not, and its binding can't be destroyed; write-shared, two machines have it.
func TestAccVirtualMachine_SharedFolder(t *testing.T) {
	l := acctest.Lab(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), []byte("hello from the claim"), 0o600); err != nil {
		t.Fatal(err)
	}
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "folders", Name: "data", Size: 1 << 20, Filesystem: true,
		Source: &corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
	})
	consoles := map[string]acctest.Console{"web": acctest.NewConsole(t), "db": acctest.NewConsole(t)}
	binding := func(name, mode string) string {
		return acctest.Provider(l, "folders") + fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name        = %q
  hosts       = ["host-a"]
  access_mode = %q
  source      = { persistent_volume_claim = { namespace = "folders", claim_name = "data", shared_folder = true } }
}
`, name, mode)
	}
	sharer := func(name string) string {
		return machine{
			name: name, cmdline: "writes=" + name + " virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte(sharing)),
			log: consoles[name].Path(),
			more: `force_stop = true
  filesystems = { data = { volume = virtclaim_volume_binding.data.volume, driver = "9p" } }`,
		}.hcl(l)
	}
	wrote := func(boots int, names ...string) func(*terraform.State) error {
		return func(*terraform.State) error {
			for _, name := range names {
				consoles[name].AwaitN(t, "SHARED hello from the claim", boots)
				consoles[name].AwaitN(t, "WROTE", boots)
				if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "from the guest\n" {
					t.Errorf("machine %s wrote %q (%v)", name, text, err)
				}
			}
			return nil
		}
	}
	theirs := filepath.Join(t.TempDir(), "theirs.xml")
	if err := os.WriteFile(theirs, fmt.Appendf(nil, `<domain type='qemu'><name>theirs</name><memory unit='MiB'>32</memory><os><type>hvm</type></os>`+
		`<devices><filesystem type='mount'><source dir=%q/><target dir='tag'/></filesystem></devices></domain>`, filepath.Dir(dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	virsh := func(arguments ...string) func() {
		return func() {
			if _, err := l.Hosts["host-a"].Virsh(t.Context(), arguments...); err != nil {
				t.Error(err)
			}
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config:      binding("data", "write-exclusive") + sharer("web") + sharer("db"),
				ExpectError: regexp.MustCompile(`(?s)Two machines on the same storage.*machine\s+host-a/`),
			},
			{
				PreConfig:   virsh("define", theirs),
				Config:      binding("data", "write-exclusive") + sharer("web"),
				ExpectError: regexp.MustCompile(`(?s)domain\s+theirs.*as\s+its\s+filesystem\s+tag`),
			},
			{
				PreConfig: virsh("undefine", "theirs"),
				Config:    binding("data", "write-exclusive") + sharer("web"),
				Check: resource.ComposeTestCheckFunc(wrote(1, "web"),
					resource.TestCheckNoResourceAttr("virtclaim_virtual_machine.web", "filesystems.data.source"),
					resource.TestCheckResourceAttr("virtclaim_virtual_machine.web", "filesystems.data.read_only", "false"),
					resource.TestCheckResourceAttr("virtclaim_virtual_machine.web", "filesystems.data.volume.images.0.uri", dir+"/"),
				),
			},
			{
				ResourceName: "virtclaim_virtual_machine.web", ImportState: true, ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"force_stop", "timeouts"},
			},
			{
				Config: binding("data-2", "write-exclusive") + sharer("web"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("virtclaim_virtual_machine.web", plancheck.ResourceActionUpdate),
				}},
				ExpectError: regexp.MustCompile(`(?s)as\s+its\s+filesystem\s+data,\s+which\s+a\s+running\s+guest\s+can't\s+lose`),
			},
			{Config: binding("data", "write-exclusive")},
			{Config: binding("data", "write-shared") + sharer("web") + sharer("db"), Check: func(s *terraform.State) error {
				return resource.ComposeTestCheckFunc(wrote(2, "web"), wrote(1, "db"))(s)
			}},
		},
	})
}
