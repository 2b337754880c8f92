//go:build acc

package volumebinding_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A file on a server is looked at before a machine has it as raw: the guest would see the header of another format, and write over it.
func TestAccVolumeBinding_NetworkFormat(t *testing.T) {
	l := acctest.Lab(t)
	dir := acctest.NFS(t, l)
	image := filepath.Join(dir.Path, "disk.img")
	qcow2At(t, image)
	web, file := acctest.Web(t, l)
	served, err := os.ReadFile(image)
	if err == nil {
		err = os.WriteFile(file.Path, served, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "looks", Name: "data", Size: acctest.StorageSize, Filesystem: true,
		Source: &corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: dir.Server, Path: dir.Export}},
	})
	cli := acctest.NewCLI(t)
	for name, of := range map[string]string{
		"claim": `persistent_volume_claim = { namespace = "looks", claim_name = "data"%s }`,
		"nfs":   fmt.Sprintf("nfs = { server = %q, path = %q%%s }", dir.Server, dir.Export+"/disk.img"),
		"http":  fmt.Sprintf("http = { url = %q%%s }", file.URL("http", web.HTTP)),
	} {
		t.Run(name, func(t *testing.T) {
			write := func(option string) {
				cli.Write("main.tf", acctest.Provider(l, "looks")+binding(fmt.Sprintf(of, option), `access_mode = "read-shared"`, "host-a"))
			}
			write("")
			out, err := cli.Run("apply", "-auto-approve", "-no-color")
			if err == nil || !message("is a qcow2 image, and is to be opened as raw", `set format = "raw"`).MatchString(out) {
				t.Errorf("%v:\n%s", err, out)
			}
			write(`, format = "raw"`)
			cli.Must("apply", "-auto-approve", "-no-color")
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			cli.Must("destroy", "-auto-approve", "-no-color")
		})
	}
}

// A server with root_squash refuses QEMU, whose identity the error names.
func TestAccVolumeBinding_SquashedRootIsTold(t *testing.T) {
	l := acctest.Lab(t)
	dir, _ := acctest.SquashedNFS(t, l, 107, 107)
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "looks", Name: "data", Size: acctest.StorageSize, Filesystem: true,
		Source: &corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: dir.Server, Path: dir.Export}},
	})
	cli := configured(t, l, "looks", binding(fromClaim("looks", "data"), "", "host-a"))
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("It asks as uid 0 and gid 0", "set uid and gid to the owner of the file").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	cli.Write("main.tf", acctest.Provider(l, "looks")+
		binding(`persistent_volume_claim = { namespace = "looks", claim_name = "data", uid = 107 }`, "", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	says(t, cli.Must("state", "show", "-no-color", data), "gid=107", "uid=107")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// What a killed look has left is removed by the next one, and a refused one binds nothing.
func TestAccVolumeBinding_InterruptedLook(t *testing.T) {
	l := acctest.Lab(t)
	dir := acctest.NFS(t, l)
	acctest.ImageIn(t, dir.Path, "disk.img")
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "looks", Name: "data", Size: acctest.StorageSize, Filesystem: true,
		Source: &corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: dir.Server, Path: dir.Export}},
	})
	cli, tap := tapped(t, l, "looks", binding(fromClaim("looks", "data"), "", "host-a"))
	calls := map[lab.Call]int{
		lab.CallPoolDefine: 1, lab.CallPoolCreate: 1, lab.CallVolumeCreate: 1, lab.CallCreateXML: 2, lab.CallBlockCopy: 1,
		lab.CallBlockJobAbort: 1, lab.CallVolumeDownload: 1, lab.CallVolumeDelete: 1, lab.CallPoolDestroy: 1, lab.CallPoolDelete: 1,
		lab.CallPoolUndefine: 1,
	}
	for _, f := range acctest.Points(calls, []lab.Fault{{After: true, Kill: true}, {Refuse: true}}) {
		t.Run(f.String(), func(t *testing.T) {
			if out, err := acctest.Interrupt(t, cli, tap, f); err == nil {
				t.Errorf("it was bound:\n%s", out)
			}
			acctest.PutRight(t, cli, func(t *testing.T) {
				t.Helper()
				pools := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "pool-list", "--all", "--name"))(t)
				if strings.Contains(pools, "virtclaim-look-") {
					t.Errorf("these are left:\n%s", pools)
				}
			})
			cli.Must("destroy", "-auto-approve")
		})
	}
}
