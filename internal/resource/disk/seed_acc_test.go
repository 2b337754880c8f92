//go:build acc

package disk_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func seed(name, more string) string {
	return disk(name, "source = { cloud_init = {"+more+"} }")
}

// seedHas fails the test for each part that the seed's image lacks.
func seedHas(t *testing.T, l *lab.Lab, name string, parts ...string) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		acctest.Contains(t, read(t, file(l, name)), parts...)
		return nil
	}
}

// A seed is replaced only if its content changes, and is the same for the same content, byte for byte.
func TestAccDisk_SeedIsReplacedByContent(t *testing.T) {
	l := acctest.Lab(t)
	var first string
	one := acctest.Provider(l, "disks") + seed("root", `user_data = "#cloud-config\nhostname: one\n", network_data = "version: 2\n"`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: one,
				Check: func(s *terraform.State) error {
					first = read(t, file(l, "root"))
					return seedHas(t, l, "root", "cidata", "hostname: one", "version: 2", "instance-id: ")(s)
				},
			},
			{Config: one, PlanOnly: true},
			{
				Config:           strings.Replace(one, "hostname: one", "hostname: two", 1),
				ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionDestroyBeforeCreate)),
				Check:            seedHas(t, l, "root", "hostname: two"),
			},
			{
				Config: one,
				Check: func(*terraform.State) error {
					if read(t, file(l, "root")) != first {
						return fmt.Errorf("the same content made another seed")
					}
					return nil
				},
			},
			{
				Config:           strings.Replace(one, "network_data", `meta_data = "instance-id: mine\n", network_data`, 1),
				ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionDestroyBeforeCreate)),
				Check:            seedHas(t, l, "root", "instance-id: mine"),
			},
		},
	})
}

// A guest that mounts and reads the medium stands in for cloud-init. The machine has two media, and keeps running when one changes.
func TestAccDisk_ChangedSeedIsInsertedLive(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := func(hostname string) string {
		return acctest.Provider(l, "disks") + seed("one", `user_data = "#cloud-config\nhostname: `+hostname+`\n"`) +
			seed("two", `user_data = "#cloud-config\n", network_data = "version: 2\n"`) +
			vm(l, console, "virtclaim.cdroms=2", "", on("one", "virtclaim_disk.one", `, device = "cdrom"`), on("two", "virtclaim_disk.two", `, device = "cdrom"`))
	}
	has := func(drive, name, content string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			console.Await(t, "READY")
			said := acctest.Must(l.Hosts["host-a"].Shell(context.Background(), "web", "report_cdrom "+drive+"; read_cdrom "+drive))(t)
			acctest.Contains(t, said, "label=cidata", "ro=1", name+" "+base64.StdEncoding.EncodeToString([]byte(content)))
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config("first"),
				Check: resource.ComposeTestCheckFunc(
					has("sr0", "user-data", "#cloud-config\nhostname: first\n"), has("sr1", "network-config", "version: 2\n"),
				),
			},
			{Config: config("first"), PlanOnly: true},
			{
				Config: config("second"),
				ConfigPlanChecks: pre(planned("virtclaim_disk.one", plancheck.ResourceActionDestroyBeforeCreate),
					planned(theMachine, plancheck.ResourceActionUpdate), planned("virtclaim_disk.two", plancheck.ResourceActionNoop)),
				Check: resource.ComposeTestCheckFunc(
					has("sr0", "user-data", "#cloud-config\nhostname: second\n"), has("sr1", "network-config", "version: 2\n"), boots(t, console, 1),
				),
			},
			{Config: config("second"), PlanOnly: true},
		},
	})
}

// A guest also reads a seed that is no medium of a drive but a disk, for images whose kernel has no driver for CD-ROMs.
func TestAccDisk_SeedAsPlainDisk(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "disks") + seed("plain", `user_data = "#cloud-config\nhostname: plain\n"`) +
				vm(l, console, "virtclaim.disks=1 virtclaim.read=vda virtclaim.write=vda:must-not-arrive", "", on("seed", "virtclaim_disk.plain", "")),
			Check: func(*terraform.State) error {
				acctest.Contains(t, console.Await(t, "DISK vda "), "ro=1")
				console.Await(t, "FAILED vda ")
				acctest.Contains(t, console.Await(t, "FILE vda user-data "), base64.StdEncoding.EncodeToString([]byte("#cloud-config\nhostname: plain\n")))
				return nil
			},
		}},
	})
}

// userData is a secret of the cluster.
func userData(t *testing.T, l *lab.Lab, content string) func(content string) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "disks", Name: "seed"}, StringData: map[string]string{
			"userData": content, "networkdata": "version: 2", "ignition": `{"ignition":{"version":"3.4.0"},"of":"` + content + `"}`,
		},
	}
	if err := l.AddSecret(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveSecret(ctx, "disks", "seed") })
	return func(content string) {
		secret.StringData["userData"] = content
		if _, err := l.Cluster.Client.CoreV1().Secrets("disks").Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

const fromSecret = `
  user_data_secret_ref    = { namespace = "disks", name = "seed" }
  network_data_secret_ref = { namespace = "disks", name = "seed" }
`

func TestAccDisk_SeedFollowsSecret(t *testing.T) {
	l := acctest.Lab(t)
	config := acctest.Provider(l, "disks") + seed("root", fromSecret)
	change := userData(t, l, "#cloud-config one")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: seedHas(t, l, "root", "#cloud-config one", "version: 2")},
			{Config: config, PlanOnly: true},
			{
				PreConfig:        func() { change("#cloud-config two") },
				Config:           config,
				ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionDestroyBeforeCreate)),
				Check:            seedHas(t, l, "root", "#cloud-config two"),
			},
			{
				Config:      acctest.Provider(l, "disks") + seed("root", strings.Replace(fromSecret, `"seed"`, `"none"`, 1)),
				ExpectError: message("secrets \"none\" not found"),
			},
		},
	})
}

// Write-only values and secrets are in the seed, the files and the Ignition configuration, and nowhere else.
func TestAccDisk_SeedSecretsAreNowhere(t *testing.T) {
	l := acctest.Lab(t)
	userData(t, l, "hidden-in-the-cluster")
	cli := acctest.NewCLI(t, "TF_LOG=TRACE", "TF_LOG_PATH=trace.log", "TF_VAR_hidden=hidden-from-plans")
	cli.Write("main.tf", acctest.Provider(l, "disks")+`
variable "hidden" {
  type      = string
  ephemeral = true
}
`+seed("written", "user_data_wo = var.hidden, user_data_wo_version = 1")+seed("kept", fromSecret)+
		disk("files", `source = { files = { label = "x", content_wo = { a = var.hidden }, content_wo_version = 1
			secrets = { b = { namespace = "disks", name = "seed", key = "userData" } } } }`)+
		disk("ignition_written", `source = { ignition = {
			config_wo = jsonencode({ ignition = { version = "3.4.0" }, x = var.hidden }), config_wo_version = 1 } }`)+
		disk("ignition_kept", `source = { ignition = { secret_ref = { namespace = "disks", name = "seed" } } }`))
	everything := map[string]string{"output of plan": cli.Must("plan", "-out=the.plan", "-no-color")}
	everything["output of apply"] = cli.Must("apply", "-no-color", "the.plan")
	everything["plan as JSON"] = cli.Must("show", "-json", "the.plan")
	acctest.Contains(t, read(t, file(l, "written")), "hidden-from-plans")
	acctest.Contains(t, read(t, file(l, "kept")), "hidden-in-the-cluster")
	acctest.Contains(t, read(t, file(l, "files")), "hidden-from-plans", "hidden-in-the-cluster")
	acctest.Contains(t, read(t, file(l, "ignition_written")), "hidden-from-plans")
	acctest.Contains(t, read(t, file(l, "ignition_kept")), "hidden-in-the-cluster")
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}
	for _, version := range []string{"user_data", "content", "config"} {
		cli.Replace("main.tf", version+"_wo_version = 1", version+"_wo_version = 2")
	}
	changed := cli.With("TF_VAR_hidden=hidden-once-more")
	everything["output of the change"] = changed.Must("apply", "-auto-approve", "-no-color")
	for _, name := range []string{"written", "files", "ignition_written"} {
		acctest.Contains(t, read(t, file(l, name)), "hidden-once-more")
	}
	everything["output of destroy"] = cli.Must("destroy", "-auto-approve", "-no-color")
	files, err := filepath.Glob(filepath.Join(cli.Dir, "*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("only %v: %v", files, err)
	}
	for _, name := range files {
		text, _ := os.ReadFile(name) // a folder has none
		everything[name] = string(text)
	}
	for what, text := range everything {
		if strings.Contains(text, "hidden-") {
			t.Errorf("what is hidden is in the %s", what)
		}
		if strings.Contains(text, "is lost") {
			t.Errorf("the %s warns that a seed is lost, which has nothing that is not in the configuration", what)
		}
	}
}
