//go:build acc

package virtualmachine_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const ignitionV3 = `{"ignition":{"version":"3.4.0"},"passwd":{"users":[{"name":"core","passwordHash":"hidden,text"}]}}`

// onLab is a guide's configuration on a host of the lab.
func onLab(config string, more ...string) string {
	return strings.NewReplacer(append([]string{
		"node-a", "host-a", `network = "default"`, "user = true", `memory     = "2Gi"`, `memory = "128Mi"`, `memory      = "2Gi"`, `memory = "128Mi"`,
		"disks      = {", "machine = { domain_type = \"qemu\" }\n  force_stop = true\n  timeouts = { delete = \"20s\" }\n  disks = {",
		"disks       = {", "machine = { domain_type = \"qemu\" }\n  force_stop = true\n  timeouts = { delete = \"20s\" }\n  disks = {",
	}, more...)...).Replace(config)
}

// anImage is the URL of an image that boots nothing.
func anImage(t *testing.T, l *lab.Lab, name string, content []byte) string {
	t.Helper()
	web := acctest.Must(l.Web(t.Context()))(t)
	file := acctest.Must(web.AddContent(name, content))(t)
	return file.URL("http", web.HTTP)
}

// A guest reads a file of the host in QEMU's fw_cfg device. The file's disk is kept while the machine needs it to start, and is in no state.
func TestAccVirtualMachine_FWCfg(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	const entry = "opt/com.coreos/config"
	const script = "/bin/busybox base64 -w 0 /sys/firmware/qemu_fw_cfg/by_name/" + entry + "/raw; echo; echo read; while :; do /bin/busybox sleep 1; done"
	cli := acctest.NewCLI(t, "TF_VAR_config="+ignitionV3)
	config := func(n int, lifecycle, fwCfg string) string {
		return acctest.Provider(l, "ignition") + runnable(t, l, script, nil) + fmt.Sprintf(`
variable "config" {
  sensitive = true
}
resource "virtclaim_disk" "ignition" {
  host        = "host-a"
  name_prefix = "web-"
  usage_type  = "fast"
  source      = { ignition = { config_wo = var.config, config_wo_version = %d } }
  %s
}
`, n, lifecycle) + runs(console, "", fwCfg)
	}
	const reads = `fw_cfg = { "` + entry + `" = virtclaim_disk.ignition.volume.images[0].uri }`
	cli.Write("main.tf", config(1, "", reads))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "read")
	acctest.Contains(t, console.Text(t), strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(ignitionV3)), "=")[:100])
	acctest.Contains(t, plan(t, cli), "No changes.")
	virsh := func(args ...string) string { return acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), args...))(t) }
	for name, text := range map[string]string{"the state": cli.Must("state", "pull"), "the definition": virsh("dumpxml", "web")} {
		if strings.Contains(text, "hidden") {
			t.Errorf("%s has the configuration", name)
		}
	}

	cli.Write("main.tf", config(2, "", reads))
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("domain web reads it when it starts").MatchString(out) {
		t.Errorf("%v: the file of a machine is removed:\n%s", err, out)
	}
	cli.Write("main.tf", config(2, "lifecycle { create_before_destroy = true }", reads))
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("web was started with it").MatchString(out) ||
		!message("takes effect at its next start").MatchString(out) {
		t.Errorf("%v: the file of a running machine is removed:\n%s", err, out)
	}
	virsh("destroy", "web")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")

	cli.Must("state", "rm", "virtclaim_virtual_machine.web")
	cli.Must("import", "-no-color", "virtclaim_virtual_machine.web", "host-a/web")
	out := plan(t, cli)
	if strings.Contains(out, "fw_cfg ") {
		t.Errorf("an import has other files:\n%s", out)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", config(2, "lifecycle { create_before_destroy = true }", ""))
	cli.Must("apply", "-auto-approve", "-no-color")
	if text := virsh("dumpxml", "--inactive", "web"); strings.Contains(text, entry) || !strings.Contains(text, "opt/io.virtclaim/run") {
		t.Errorf("without the file it is\n%s", text)
	}
	virsh("destroy", "web")
	cli.Must("apply", "-auto-approve", "-no-color") // it starts without the file
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The configurations of the guide are applied as they stand, with other images, and QEMU is given what they say.
func TestAccGuide_FirstBoot(t *testing.T) {
	l := acctest.Lab(t)
	url := anImage(t, l, "first-boot.raw", bytes.Repeat([]byte("x"), 1<<20))
	argv := func(domain string) string {
		return acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "domxml-to-native", "qemu-argv", "--domain", domain))(t)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "machines", Name: "core"}, Data: map[string][]byte{"ignition": []byte(ignitionV3)},
	}
	if err := l.AddSecret(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveSecret(ctx, "machines", "core") })
	for heading, c := range map[string]struct{ domain, has, again string }{
		"Flatcar":       {"web", "-fw_cfg name=opt/org.flatcar-linux/config,file=", "3 added, 0 changed, 3 destroyed"},
		"Fedora CoreOS": {"core", "-fw_cfg name=opt/com.coreos/config,file=", ""},
		"Talos":         {"node", "node-config", ""},
	} {
		t.Run(heading, func(t *testing.T) {
			_, config := guide(t, "first-boot.md", heading)
			cli := acctest.NewCLI(t, "TF_VAR_image="+url)
			cli.Write("provider.tf", acctest.Provider(l, "first-boot"))
			cli.Write("web.ign", ignitionV3)
			cli.Write("controlplane.yaml", "version: v1alpha1\n")
			cli.Write("main.tf", onLab(config, `memory = "4Gi"`, "memory = \"128Mi\"\n  machine = { domain_type = \"qemu\" }\n  force_stop = true\n  timeouts = { delete = \"20s\" }"))
			cli.Must("apply", "-auto-approve", "-no-color")
			acctest.Contains(t, plan(t, cli), "No changes.")
			acctest.Contains(t, argv(c.domain), c.has)
			if c.again != "" {
				cli.Replace("main.tf", "config_wo_version = 1", "config_wo_version = 2")
				acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_disk.root",
					"-replace=virtclaim_virtual_machine.web"), c.again)
			}
			cli.Must("destroy", "-auto-approve", "-no-color")
		})
	}
}

func TestAccGuide_Windows(t *testing.T) {
	l := acctest.Lab(t)
	a := l.Hosts["host-a"]
	medium := acctest.Must(image.ISO("MEDIUM", image.ISOFile{Name: "readme", Content: []byte("x")}))(t)
	url := anImage(t, l, "virtio-win.iso", medium)
	cli := acctest.NewCLI(t, "TF_VAR_installer=Win11.iso", "TF_VAR_drivers="+url)
	cli.Write("provider.tf", acctest.Provider(l, "windows"))
	cli.Write("Win11.iso", string(medium))
	cli.Write("Autounattend.xml", "<unattend>hidden</unattend>")
	_, config := guide(t, "windows.md", "The configuration")
	config = onLab(config, `memory  = "8Gi"`, `memory = "256Mi"`, `machine = { type = "q35" }`,
		"machine = { type = \"q35\", domain_type = \"qemu\" }\n  force_stop = true\n  timeouts = { delete = \"20s\" }\n  running = false", "host-passthrough", "maximum")
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")
	acctest.Contains(t, acctest.Must(a.Virsh(t.Context(), "domxml-to-native", "qemu-argv", "--domain", "desk"))(t),
		"hv-spinlocks=0x1fff", "hv-time=on", "base=localtime", "driftfix=slew", "property=secure,value=on", "tpm-crb", "usb-tablet")

	// Only KVM has the enlightenments.
	cli.Write("main.tf", strings.NewReplacer("running = false", "", "features = { hyperv = true }", "", "hypervclock = { present = true }", "").Replace(config))
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")
	query := func(command string) string {
		return acctest.Must(a.Virsh(t.Context(), "qemu-monitor-command", "desk", `{"execute":"`+command+`"}`))(t)
	}
	acctest.Contains(t, query("query-tpm"), "tpm-crb")
	acctest.Contains(t, query("query-block"), "desk-installer", "virtio-win", "desk-unattend")
	cli.Must("destroy", "-auto-approve", "-no-color")

	_, config = guide(t, "windows.md", "Many machines from one image")
	cli = acctest.NewCLI(t, "TF_VAR_golden="+url)
	cli.Write("provider.tf", acctest.Provider(l, "windows"))
	cli.Write("unattend.xml", "<ComputerName>${name}</ComputerName>")
	cli.Write("main.tf", onLab(config, `memory   = "4Gi"`, "memory = \"128Mi\"\n  running = false", `machine  = { type = "q35" }`, `machine = { type = "q35", domain_type = "qemu" }`))
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
