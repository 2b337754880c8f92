//go:build acc

package virtualmachine_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// remember prints what an earlier boot has left in a variable of the firmware and in the TPM, and then writes both. The commands to the TPM
// are TPM2_NV_ReadPublic and TPM2_NV_DefineSpace of an index; its response begins with a tag, a length and a code, of which 0 is success.
const remember = `
load efivarfs; load tpm_crb; load tpm_tis
mount -t efivarfs none /sys/firmware/efi/efivars
variable=/sys/firmware/efi/efivars/Virtclaim-b2b6c1f0-52cf-4f5e-9c0f-6d7a3c1b7a90
echo "VARIABLE $(tail -c 5 $variable 2>/dev/null || echo none)"
[ -e $variable ] || printf '\007\000\000\000hello' >$variable
tpm() {
	exec 3<>/dev/tpm0
	echo $1 | xxd -r -p | dd bs=4096 >&3 2>/dev/null
	dd bs=4096 count=1 <&3 2>/dev/null | head -c 10 | xxd -p | cut -c 13-20
	exec 3>&-
}
echo "TPM read=$(tpm 80010000000e0000016901500001) define=$(tpm 80020000002d0000012a40000001000000094000000900000000000000` +
	`000e01500001000b0206000600000008)"
`

// The state of a machine's firmware and TPM survives a change, a stop and a start. Both are deleted with the machine, also if they were
// removed from its definition before.
func TestAccVirtualMachine_FirmwareAndTPMKeepState(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := func(memory, more string) string {
		m := machine{
			memory: memory, machineType: "q35", log: console.Path(), more: more,
			cmdline: "virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte(remember)),
		}
		return acctest.Provider(l, "firmware") + strings.Replace(m.hcl(l), l.Guest.Kernel, l.Guest.Compressed, 1)
	}
	const both = `
  firmware = { type = "efi" }
  tpm      = {}`
	const secure = `
resource "virtclaim_virtual_machine" "secure" {
  host       = "host-a"
  name       = "secure"
  memory     = "128Mi"
  machine    = { type = %q, domain_type = "qemu" }
  firmware   = { type = "efi", secure_boot = true }
  tpm        = { model = "tpm-crb" }
  force_stop = true
}`
	says := func(n int, lines ...string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			console.AwaitN(t, "BOOT ", n) // the firmware takes some time
			console.AwaitN(t, "READY", n)
			for _, line := range lines {
				console.Await(t, line)
			}
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config:      config("256Mi", both) + fmt.Sprintf(secure, "pc"),
				ExpectError: message("No secure boot on a pc", "pc", "q35"),
			},
			{
				Config: config("256Mi", both),
				Check:  says(1, "VARIABLE none", "TPM read=0000018b define=00000000"),
			},
			{ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true},
			{
				Config:           config("288Mi", both+"\n running = false") + fmt.Sprintf(secure, "q35"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: func(*terraform.State) error {
					live, err := l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "secure")
					acctest.Contains(t, live, "secure='yes' type='pflash'", "<feature enabled='yes' name='enrolled-keys'/>", "model='tpm-crb'")
					if err != nil {
						return err
					}
					_, err = l.Hosts["host-a"].Virsh(t.Context(), "suspend", "secure") // the next step destroys it, and it has no guest that shuts down
					return err
				},
			},
			{
				Config:           config("288Mi", both),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            says(2, "VARIABLE hello", "TPM read=00000000 define=0000014c"),
			},
			{
				// BIOS is the default, so that only the configured value is read back.
				Config:           config("288Mi", `firmware = { type = "bios" }`),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr(web, "firmware.type", "bios"),
					resource.TestCheckNoResourceAttr(web, "tpm.version")),
			},
			{Config: config("288Mi", ""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate)},
		},
	})
}
