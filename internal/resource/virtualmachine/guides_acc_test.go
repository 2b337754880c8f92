//go:build acc

package virtualmachine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// guide is a guide, and the first configuration below a heading.
func guide(t *testing.T, name, heading string) (page, config string) {
	t.Helper()
	page = string(acctest.Must(os.ReadFile("../../../templates/guides/" + name))(t))
	_, config, _ = strings.Cut(page, "\n## "+heading+"\n")
	_, config, _ = strings.Cut(config, "```terraform\n")
	config, _, found := strings.Cut(config, "```\n")
	if !found {
		t.Fatalf("%s has no configuration", name)
	}
	return page, config
}

// One machine after the other gets another golden image; the others keep their disks.
func TestAccGuide_GoldenImage(t *testing.T) {
	l := acctest.Lab(t)
	for _, name := range []string{"debian-12", "debian-13"} {
		acctest.Claim(t, l, "vms", name, acctest.LUN(t, l, false, name))
	}
	_, config := guide(t, "operations.md", "Another golden image")
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "operations"))
	cli.Write("main.tf", strings.NewReplacer("node-a", "host-a", `memory   = "2Gi"`, "memory = \"128Mi\"\n  running = false\n  machine = { domain_type = \"qemu\" }").Replace(config))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Replace("main.tf", `web-0 = "v1"`, `web-0 = "v2"`)
	out := cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, out, "2 added, 0 changed, 2 destroyed")
	acctest.Contains(t, acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "web-0"))(t), "debian-13")
	acctest.Contains(t, acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "web-1"))(t), "debian-12")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A storage pool gets another file system at the path of the former one, as the recipe says: nothing is another disk after that.
func TestAccGuide_PoolMoves(t *testing.T) {
	l := acctest.Lab(t)
	a, console, cli := l.Hosts["host-a"], acctest.NewConsole(t), acctest.NewCLI(t)
	acctest.Claim(t, l, "machines", "pool", acctest.LUN(t, l, false, "golden"))
	cli.Write("provider.tf", acctest.Provider(l, "operations"))
	cli.Write("main.tf", claimBinding("machines", "pool", "read-shared", "host-a")+copyOf("pool", "root", "copy-on-write")+`
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  format     = "raw"
  size       = "8Mi"
}
`+machine{log: console.Path(), more: "running = true", disks: []string{told("root", "virtclaim_disk.root"), told("data", "virtclaim_disk.data")}}.hcl(l))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")

	cli.Replace("main.tf", "running = true", "running = false")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Must(a.Virsh(t.Context(), "pool-destroy", "ssd"))(t)
	pool := filepath.Join(a.Dir, "pools", "ssd")
	move := fmt.Sprintf("mv %[1]s %[1]s.old && cp -a --sparse=always %[1]s.old %[1]s && rm -r %[1]s.old", pool)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", move).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	acctest.Must(a.Virsh(t.Context(), "pool-start", "ssd"))(t)
	acctest.Contains(t, plan(t, cli), "No changes.")
	cli.Replace("main.tf", "running = false", "running = true")
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 0 destroyed")
	console.AwaitN(t, "READY", 2)
	acctest.Contains(t, plan(t, cli), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The guide's page is applied as it stands, with a distribution's image: only its variables have the lab's values.
func TestAccGuide_FirstMachine(t *testing.T) {
	l := acctest.Lab(t)
	h := acctest.Must(l.NetworkedHost(t.Context()))(t)
	page, config := guide(t, "first-machine.md", "The configuration")
	key := filepath.Join(h.Dir, "first-machine") // the host has this folder, too
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	t.Cleanup(func() { _, _ = os.Remove(key), os.Remove(key+".pub") })
	cli := acctest.NewCLI(t, "TF_VAR_uri="+h.URI, "TF_VAR_domain_type=qemu", "TF_VAR_pool=ssd", "TF_VAR_network=red",
		"TF_VAR_ssh_key="+key+".pub", "TF_VAR_image="+acctest.Must(l.Distribution(t.Context()))(t))
	cli.Write("versions.tf", "")
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	address := cli.Must("output", "-raw", "-no-color", "address")
	said := func(command string) string {
		t.Helper()
		ssh := fmt.Sprintf("ssh -i %s -o BatchMode=yes -o ConnectTimeout=10 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null debian@%s %q 2>/dev/null",
			key, address, command)
		ctx, cancel := context.WithTimeout(t.Context(), lab.Patience(5*time.Minute))
		defer cancel()
		for {
			out, err := h.Run(ctx, ssh)
			if err == nil {
				return out
			}
			if ctx.Err() != nil {
				t.Fatalf("%s was not answered: %v", command, err)
			}
			time.Sleep(time.Second) // nothing tells when a guest's ssh server is there
		}
	}
	acctest.Contains(t, said("sudo cloud-init status --wait; hostname; df --output=size -BG / | tail -1"), "status: done", "first", "10G")
	changed := "memory = \"2Gi\"\nsize   = \"20Gi\"\n"
	grow := "sudo growpart /dev/vda 1 && sudo resize2fs /dev/vda1"
	if !strings.Contains(page, changed) || !strings.Contains(page, "'"+grow+"'") {
		t.Error("the page changes something else")
	}
	cli.Write("terraform.tfvars", changed)
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, acctest.Must(h.Virsh(t.Context(), "dommemstat", "first"))(t), "actual 2097152")
	said(strings.NewReplacer("vda 1", "vda 2", "vda1", "vda2").Replace(grow)) // the lab's image has another partition first
	acctest.Contains(t, said("df --output=size -BG / | tail -1"), "20G")

	// The agent of the lab's image tells when cloud-init has ended, puts a processor online, and shuts the guest down.
	_, web := guide(t, "first-machine.md", "Several machines over one image")
	const waits = `wait_for   = { addresses = ["lan"], timeout = "5m" }`
	if !strings.Contains(web, waits) {
		t.Fatal("the page waits for something else")
	}
	web = strings.Replace(web, waits, fmt.Sprintf(`wait_for = { addresses = ["lan"], cloud_init = true, timeout = %q }
  cpu         = { vcpus = 1, max_vcpus = 2 }
  guest_agent = true`, lab.Patience(5*time.Minute)), 1)
	cli.Write("web.tf", web)
	out := cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, out, "7 added, 0 changed")
	if message("waited for").MatchString(out) {
		t.Errorf("it warns:\n%s", out)
	}
	var addresses map[string]string
	if err := json.Unmarshal([]byte(cli.Must("output", "-json", "-no-color", "web")), &addresses); err != nil {
		t.Fatal(err)
	}
	for name := range addresses {
		address = addresses[name]
		acctest.Contains(t, said("cloud-init status; hostname; df --output=size -BG / | tail -1"), "status: done", name, "10G")
	}
	if len(addresses) != 2 {
		t.Errorf("the machines are %v", addresses)
	}
	cli.Replace("web.tf", "vcpus = 1", "vcpus = 2")
	if out := cli.Must("apply", "-auto-approve", "-no-color"); message("may be offline").MatchString(out) {
		t.Errorf("it warns:\n%s", out)
	}
	for _, address = range addresses {
		acctest.Contains(t, said("cat /sys/devices/system/cpu/online; sudo sh -c 'mkdir -p /etc/systemd/logind.conf.d && "+
			"printf \"[Login]\\nHandlePowerKey=ignore\\n\" >/etc/systemd/logind.conf.d/button.conf && systemctl restart systemd-logind'"), "0-1")
	}
	if out := joined(cli.Must("plan", "-no-color")); !strings.Contains(out, "No changes.") {
		t.Errorf("the plan after that is %s", out)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
