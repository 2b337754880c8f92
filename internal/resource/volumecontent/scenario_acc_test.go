//go:build acc

package volumecontent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// scenario is a copy of the example golden-image, with its variables for the lab but the image.
func scenario(t *testing.T, l *lab.Lab, logs string) acctest.CLI {
	t.Helper()
	uris := map[string]string{}
	for key, host := range l.Hosts {
		uris[key] = host.URI
	}
	boot := map[string]string{"kernel": l.Guest.Kernel, "initrd": l.Guest.Initrd, "cmdline": l.Guest.Parameters + " virtclaim.disks=1"}
	cli := acctest.NewCLI(
		t, "TF_VAR_hosts="+string(acctest.Must(json.Marshal(uris))(t)), "TF_VAR_kubeconfig="+l.Cluster.Kubeconfig,
		"TF_VAR_namespace=content", "TF_VAR_claim=golden", "TF_VAR_memory=128Mi",
		"TF_VAR_boot="+string(acctest.Must(json.Marshal(boot))(t)), "TF_VAR_log_dir="+logs, "TF_VAR_domain_type=qemu",
	)
	cli.Write("versions.tf", "") // main.tf names the provider
	const dir = "../../../examples/scenarios/golden-image"
	for _, file := range acctest.Must(os.ReadDir(dir))(t) {
		cli.Write(file.Name(), string(acctest.Must(os.ReadFile(filepath.Join(dir, file.Name())))(t)))
	}
	return cli
}

// The example golden-image as it stands: from an empty claim to machines in one apply, to machines of another image in one more, and
// back in one destroy.
func TestAccVolumeContent_Scenario(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	acctest.Claim(t, l, "content", "golden", lun)
	logs := t.TempDir()
	var consoles []acctest.Console
	for _, name := range []string{"web-0", "web-1", "web-2"} {
		console := acctest.ConsoleAt(filepath.Join(logs, name+".log"))
		if err := os.WriteFile(console.Path(), nil, 0o600); err != nil { // one that libvirt creates can be read by root only
			t.Fatal(err)
		}
		consoles = append(consoles, console)
	}
	cli := scenario(t, l, logs)
	for n, text := range []string{"the first image", "the other image"} {
		cli = cli.With("TF_VAR_image=" + imageOf(t, text, 1<<20))
		cli.Must("apply", "-auto-approve", "-no-color")
		for _, console := range consoles {
			acctest.Contains(t, console.AwaitN(t, "DISK vda ", n+1), "first="+text)
		}
		cli.Must("plan", "-detailed-exitcode", "-no-color")
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
	if got := acctest.StoredAt(t, lun.Path, 0, 15); got != "the other image" {
		t.Errorf("the destroy has changed what is on the volume: %q", got)
	}
}
