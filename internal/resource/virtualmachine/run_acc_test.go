//go:build acc

package virtualmachine_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// runnable are a kernel, and a disk with an image that has BusyBox, and runs a shell with the script as its command. Further layers are over it.
func runnable(t *testing.T, l *lab.Lab, script string, configure func(*v1.Config), layers ...lab.ImageLayer) string {
	t.Helper()
	registry, kernel := acctest.Must(l.Registry(t.Context()))(t), acctest.Must(l.Kernel(t.Context()))(t)
	linux := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "machines/linux", Tag: "1", Layers: []lab.ImageLayer{acctest.Must(lab.KernelLayer(kernel))(t)},
	}))(t)
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "machines/" + strings.ToLower(filepath.Base(t.Name())), Tag: "1", Entrypoint: []string{"/bin/busybox", "sh", "-c"},
		Layers: append([]lab.ImageLayer{{Programs: map[string][]byte{"bin/busybox": acctest.Must(os.ReadFile(kernel.BusyBox))(t)}}}, layers...),
		Configure: func(c *v1.Config) {
			c.Cmd = []string{script}
			if configure != nil {
				configure(c)
			}
		},
	}))(t)
	return fmt.Sprintf(`
resource "virtclaim_kernel" "linux" {
  host       = "host-a"
  name       = "linux"
  usage_type = "fast"
  cmdline    = "console=ttyS0 quiet panic=-1 no_timer_check cryptomgr.notests rodata=off"
  source     = { container_image = { image = %q } }
}

resource "virtclaim_disk" "root" {
  host       = "host-a"
  name       = "root"
  usage_type = "fast"
  size       = "20Gi"
  source     = { root_filesystem = { image = %q } }
}
`, linux.Reference, image.Reference)
}

// runs is the machine web, which runs the image; run are further attributes of run, more of the machine.
func runs(log acctest.Console, run, more string, disks ...string) string {
	return fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "96Mi"
  machine    = { type = "pc", domain_type = "qemu" }
  boot       = virtclaim_kernel.linux.boot
  serial     = { log_file = %q }
  interfaces = { lan = { user = true } }
  force_stop = true
  disks = {
    root = { volume = virtclaim_disk.root.volume }
    %s
  }
  run = {
    image = virtclaim_disk.root.image_configuration
    %s
  }
  %s
}
`, log.Path(), strings.Join(disks, "\n    "), run, more)
}

// A machine runs the program of its image, which sees what is configured; what changes waits for the next start.
func TestAccVirtualMachine_Run(t *testing.T) {
	l := acctest.Lab(t)
	const script = `set -- $(/bin/busybox id -u) $(/bin/busybox id -g); echo "user=$1:$2 folder=$PWD image=$FROM_IMAGE own=$OWN"; echo "host=$(/bin/busybox hostname)"
/bin/busybox grep -c nameserver /etc/resolv.conf | /bin/busybox sed s/^/nameservers=/; /bin/busybox ip -4 addr show dev eth0 | /bin/busybox grep inet
trap 'echo stopped; exit 5' USR1
/bin/busybox cat /data/row 2>/dev/null; echo row > /data/row && echo written; echo ready; while :; do /bin/busybox sleep 1; done`
	lun := acctest.LUN(t, l, false, "")
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-E", "root_owner=7:8", lun.Path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	acctest.Claim(t, l, "machines", "data", lun)
	base := acctest.Provider(l, "machines") + claimBinding("machines", "data", "write-exclusive", "host-a") + runnable(t, l, script, func(c *v1.Config) {
		c.User, c.StopSignal, c.Env = "7:8", "SIGUSR1", []string{"FROM_IMAGE=yes", "PATH=/bin"}
	})
	console := acctest.NewConsole(t)
	config := func(own string) string {
		return base + runs(console, fmt.Sprintf("environment = { OWN = %q }\n mounts = { data = { path = \"/data\" } }", own), "", disk("data", "data", "virtio"))
	}
	const web = "virtclaim_virtual_machine.web"
	pending := func(what ...knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(web, tfjsonpath.New("pending"), knownvalue.ListExact(what))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config("one"), ConfigStateChecks: []statecheck.StateCheck{pending()},
				Check: func(*terraform.State) error {
					console.Await(t, "has grown from")
					console.Await(t, "user=7:8 folder=/ image=yes own=one")
					console.Await(t, "host=web")
					console.Await(t, "nameservers=1")
					console.Await(t, "inet 10.0.2.15")
					console.Await(t, "written")
					return nil
				},
			},
			{Config: config("one"), PlanOnly: true},
			{
				ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"run", "timeouts", "force_stop", "boot", "allow_restart"},
			},
			{
				PreConfig: func() { console.Await(t, "ready") },
				Config:    config("two"), ConfigStateChecks: []statecheck.StateCheck{pending(knownvalue.StringExact("run"))}, ExpectNonEmptyPlan: false,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(web, plancheck.ResourceActionUpdate)}},
			},
			{
				Config: strings.Replace(config("two"), "force_stop = true", "force_stop = true\n  running = false", 1),
				Check: func(*terraform.State) error {
					console.Await(t, "stopped")
					console.Await(t, "virtclaim: exit 5")
					return nil
				},
			},
			{
				Config: config("two"), ConfigStateChecks: []statecheck.StateCheck{pending()},
				Check: func(*terraform.State) error {
					console.Await(t, "own=two")
					console.AwaitN(t, "row", 1)
					return nil
				},
			},
		},
	})
}

// How a program has ended is on the console and in the state, and a program that can't be started is said.
func TestAccVirtualMachine_RunEnds(t *testing.T) {
	l := acctest.Lab(t)
	config := acctest.Provider(l, "machines") + runnable(t, l, "exit 0", nil)
	ends := []struct{ name, run, console, exitCode string }{
		{"zero", "", "virtclaim: exit 0", "0"},
		{"three", `command = ["exit 3"]`, "virtclaim: exit 3", "3"},
		{"killed", `command = ["kill -9 $$"]`, "virtclaim: exit 137", "137"},
		{"missing", `entrypoint = ["/bin/none"]`, "/bin/none", ""},
	}
	consoles := map[string]acctest.Console{}
	var checks []resource.TestCheckFunc
	for _, e := range ends {
		log := acctest.NewConsole(t)
		consoles[e.name] = log
		machine := strings.NewReplacer(`"web"`, fmt.Sprintf("%q", e.name), "virtclaim_disk.root", "virtclaim_disk."+e.name).Replace(
			runs(log, e.run, "lifecycle { ignore_changes = [running] }"))
		_, disk, _ := strings.Cut(config, `resource "virtclaim_disk" "root"`)
		disk, _, _ = strings.Cut(disk, "\n}\n")
		config += fmt.Sprintf("resource \"virtclaim_disk\" %q", e.name) + strings.Replace(disk, `"root"`, fmt.Sprintf("%q", e.name), 1) + "\n}\n" + machine
		at := "virtclaim_virtual_machine." + e.name
		checks = append(checks, resource.TestCheckResourceAttr(at, "running", "false"))
		if e.exitCode == "" {
			checks = append(checks, resource.TestCheckNoResourceAttr(at, "exit_code"))
		} else {
			checks = append(checks, resource.TestCheckResourceAttr(at, "exit_code", e.exitCode))
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config,
				Check: func(*terraform.State) error {
					for _, e := range ends {
						consoles[e.name].Await(t, e.console)
						acctest.Eventually(t, e.name+" is off", func() error {
							if out := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "domstate", e.name))(t); !strings.Contains(out, "shut off") {
								return fmt.Errorf("it is %s", out)
							}
							return nil
						})
					}
					return nil
				},
			},
			{RefreshState: true, Check: resource.ComposeTestCheckFunc(checks...)},
			{ // the root disk still has how the run before has ended
				PreConfig: func() {
					acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "start", "three"))(t)
					acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "three"))(t)
				},
				RefreshState: true, Check: resource.TestCheckNoResourceAttr("virtclaim_virtual_machine.three", "exit_code"),
			},
		},
	})
}

// Secret variables reach the program, and are nowhere else; other values wait for the next start.
func TestAccVirtualMachine_RunSecrets(t *testing.T) {
	l := acctest.Lab(t)
	if err := l.AddNamespace(t.Context(), "machines"); err != nil {
		t.Fatal(err)
	}
	secrets := l.Cluster.Client.CoreV1().Secrets("machines")
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, StringData: map[string]string{"KEPT": "hidden-in-the-cluster", "WRITTEN": "overridden"}}
	acctest.Must(secrets.Create(t.Context(), kept, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = secrets.Delete(context.Background(), "kept", metav1.DeleteOptions{}) })
	const script = `for v in "$KEPT" "$WRITTEN"; do echo "sum=$(echo -n "$v" | /bin/busybox sha256sum | /bin/busybox cut -c1-16)"; done; echo ready; while :; do /bin/busybox sleep 1; done`
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t, "TF_LOG=TRACE", "TF_LOG_PATH=trace.log", "TF_VAR_hidden=hidden-from-plans")
	cli.Write("main.tf", acctest.Provider(l, "machines")+`
variable "hidden" {
  type      = string
  ephemeral = true
}
resource "virtclaim_disk" "environment" {
  host       = "host-a"
  name       = "environment"
  usage_type = "fast"
  source = {
    environment = {
      variables_wo         = { WRITTEN = var.hidden }
      variables_wo_version = 1
      secret_ref           = { namespace = "machines", name = "kept" }
    }
  }
}
`+runnable(t, l, script, nil)+runs(console, `environment_from = ["secrets"]`, "", "secrets = { volume = virtclaim_disk.environment.volume }"))
	everything := map[string]string{"output of plan": cli.Must("plan", "-out=the.plan", "-no-color")}
	everything["output of apply"] = cli.Must("apply", "-no-color", "the.plan")
	everything["plan as JSON"] = cli.Must("show", "-json", "the.plan")
	sum := func(text string) string { return fmt.Sprintf("sum=%x", sha256.Sum256([]byte(text)))[:20] }
	console.Await(t, sum("hidden-in-the-cluster"))
	console.Await(t, sum("hidden-from-plans"))
	everything["domain XML"] = acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "--security-info", "web"))(t)
	console.Await(t, "ready")
	everything["console"] = console.Text(t)
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}
	cli.Replace("main.tf", "variables_wo_version = 1", "variables_wo_version = 2")
	everything["output of the change"] = cli.With("TF_VAR_hidden=hidden-once-more").Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, string(acctest.Must(os.ReadFile(filepath.Join(l.Hosts["host-a"].Dir, "pools", "ssd", "environment")))(t)), "hidden-once-more")
	everything["output of destroy"] = cli.Must("destroy", "-auto-approve", "-no-color")
	nowhere(t, cli, "hidden-", everything)
}

// What can't be run is said at plan.
func TestAccVirtualMachine_RunRefused(t *testing.T) {
	l := acctest.Lab(t)
	base := acctest.Provider(l, "machines") + runnable(t, l, "exit 0", nil)
	console := acctest.NewConsole(t)
	var steps []resource.TestStep
	for _, c := range []struct{ run, want string }{
		{`root = "other"`, `has no disk "other"`},
		{`mounts = { data = { path = "/data" } }`, `has no disk "data"`},
		{`working_directory = "data"`, "absolute"},
		{`restart = "sometimes"`, "must be one of"},
		{`network = { lan = { addresses = ["10.0.0.5/24"] } }`, "by its MAC address"},
		{`entrypoint = []`, "at least 1"},
	} {
		words := regexp.MustCompile(`(\s|\\ )+`).ReplaceAllString(regexp.QuoteMeta(c.want), `[\s│]+`)
		steps = append(steps, resource.TestStep{Config: base + runs(console, c.run, ""), ExpectError: regexp.MustCompile(words)})
	}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: acctest.Factories(), Steps: steps})
}
