//go:build acc

package volumebinding_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// qcow2At creates a qcow2 image of 10 MiB, or writes it over the beginning of an existing file.
func qcow2At(t *testing.T, path string, options ...string) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	args := append(append([]string{"create", "-q", "-f", "qcow2"}, options...), image, "10M")
	if out, err := exec.CommandContext(t.Context(), "qemu-img", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Write(content); err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The header of a new binding's volume is checked: a qcow2 image is opened as qcow2 if that is configured and safe, and given to a guest as
// raw only if that is configured, or if a machine already has it as raw. A guest may write any header later.
func TestAccVolumeBinding_Format(t *testing.T) {
	l := acctest.Lab(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	secret := at("secret")
	for name, options := range map[string][]string{
		"plain": nil, "used": nil, "disk.img": nil, "split": {"-o", "data_file=" + secret},
		"backed": {"-u", "-F", "raw", "-b", "/etc/passwd"}, "mapped": nil,
	} {
		qcow2At(t, at(name), options...)
	}
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "bitmap", "--add", at("mapped"), "b0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "formats", Name: "claimed", Size: acctest.StorageSize, Filesystem: true,
		Source: &corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "files.example.com", VolumeHandle: "1"}},
	})
	domain := at("domain.xml")
	if err := os.WriteFile(domain, fmt.Appendf(nil, `<domain type='qemu'><name>used</name><memory unit='MiB'>16</memory><os><type>hvm</type></os>
		<devices><disk type='file'><driver name='qemu' type='raw'/><source file='%s'/><target dev='vda' bus='virtio'/></disk></devices></domain>`,
		at("used")), 0o600); err != nil {
		t.Fatal(err)
	}
	virsh := func(ctx context.Context, args ...string) error {
		_, err := l.Hosts["host-a"].Virsh(ctx, args...)
		return err
	}
	if err := virsh(t.Context(), "define", domain); err != nil {
		t.Fatal(err)
	}
	undefine := sync.OnceValue(func() error { return virsh(context.WithoutCancel(t.Context()), "undefine", "used") })
	acctest.Undo(t, func(context.Context) error { return undefine() })

	cli := acctest.NewCLI(t)
	write := func(more string, formats map[string]string) {
		config := acctest.Provider(l, "formats")
		for name, format := range formats {
			source := fmt.Sprintf("file = { path = %q, %s }", at(name), format)
			if name == "disk.img" {
				name, source = "claimed", fmt.Sprintf(
					"persistent_volume_claim = { namespace = \"formats\", claim_name = \"claimed\", mount_path = %q, %s }", dir, format)
			}
			config += strings.ReplaceAll(binding(source, more, "host-a"), `"data"`, fmt.Sprintf("%q", name))
		}
		cli.Write("main.tf", config)
	}
	const qcow2, raw = `format = "qcow2"`, `format = "raw"`
	write("", map[string]string{"plain": "", "split": qcow2, "backed": "", "mapped": qcow2, "used": qcow2, "disk.img": ""})
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Errorf("all of it was bound:\n%s", out)
	}
	for name, parts := range map[string][]string{
		"plain":   {at("plain") + " is a qcow2 image, and is to be opened as raw", "set format = \"raw\"", "Set format = \"qcow2\""},
		"split":   {at("split") + ": it is to be opened as qcow2: the image is refused", "keeps its data in another file", "set format = \"raw\""},
		"backed":  {at("backed") + ": it is to be opened as raw: the image is refused", "names a backing file"},
		"mapped":  {at("mapped") + ": it is to be opened as qcow2: the image is refused", "with persistent bitmaps"},
		"used":    {"domain used on host host-a opens " + at("used") + " as raw"},
		"claimed": {at("disk.img") + " is a qcow2 image, and is to be opened as raw", "If you trust who wrote it", "qemu-img convert -f qcow2 -O raw"},
	} {
		if !message(append([]string{"The volume could not be bound", "virtclaim_volume_binding." + name}, parts...)...).MatchString(out) {
			t.Errorf("%s: %q is missing in:\n%s", name, parts, out)
		}
	}

	good := map[string]string{"plain": qcow2, "split": raw, "used": "", "disk.img": raw}
	write("", good)
	cli.Must("apply", "-auto-approve", "-no-color")
	for name, parts := range map[string][]string{
		"plain": {"capacity = 10485760", `format = "qcow2"`}, "split": {`format = "raw"`}, "used": {`format = "raw"`}, "claimed": {`format = "raw"`},
	} {
		shown := strings.Join(strings.Fields(cli.Must("state", "show", "-no-color", "virtclaim_volume_binding."+name)), " ")
		_, volume, _ := strings.Cut(shown, "volume = {")
		acctest.Contains(t, volume, parts...)
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}

	if err := undefine(); err != nil {
		t.Fatal(err)
	}

	// Later headers were written by a guest: they change nothing, and an update does not check them.
	qcow2At(t, at("split"), "-u", "-F", "raw", "-b", "/etc/shadow")
	delete(good, "plain")
	good["split"] = ""
	write(`access_mode = "read-shared"`, good)
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !strings.Contains(out, "0 added, 3 changed, 1 destroyed") {
		t.Errorf("they were not just updated:\n%s", out)
	}
	// In another format it is another volume, whose header is checked again.
	write(`access_mode = "read-shared"`, map[string]string{"split": qcow2})
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("must be replaced", "names a backing file").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// Storage that has no bytes is a mistake, such as an image whose upload failed.
func TestAccVolumeBinding_EmptyStorageIsRefused(t *testing.T) {
	l := acctest.Lab(t)
	web := acctest.Must(l.Web(t.Context()))(t)
	empty := acctest.Must(web.AddContent("empty.img", nil))(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "formats")+fmt.Sprintf(`
resource "virtclaim_volume_binding" "empty" {
  name        = "empty"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { http = { url = %q } }
}
`, empty.URL("http", web.HTTP)))
	refuses(t, cli, "it has a size of 0 bytes")
}
