//go:build acc

package virtualmachine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// workingDay is what an operator has: five machines, and the images of today and of after the updates.
type workingDay struct {
	*testing.T
	lab       *lab.Lab
	host      *lab.Host
	cli       acctest.CLI
	folder    string
	variables map[string]any
	images    map[string]string
	client    string
}

func newWorkingDay(t *testing.T) *workingDay {
	t.Helper()
	l := acctest.Lab(t)
	d := &workingDay{
		T: t, lab: l, host: acctest.Must(l.NetworkedHost(t.Context()))(t), cli: acctest.NewCLI(t), folder: t.TempDir(), images: map[string]string{},
	}
	apps := acctest.Must(l.Applications(t.Context()))(t)
	d.addImages(apps)
	d.client = "timeout 10 " + strings.Join(acctest.Must(apps.Files.PSQL())(t), " ") +
		" --host 192.168.71.10 --username=postgres --no-psqlrc --tuples-only --no-align --quiet --command "
	d.variables = map[string]any{
		"uri": d.host.URI, "log_dir": d.folder, "size": "128Mi", "allow_restart": false, "images": map[string]string{
			"kernel": apps.Kernel.Reference, "web": apps.Web.Reference, "database": apps.Database.Reference, "job": d.images["job:1"],
			"static": d.images["static:1"], "script": d.images["script:1"],
		},
	}
	for _, name := range []string{"web", "database", "job", "static", "script"} { // files that libvirt makes can be read by root only
		if err := os.WriteFile(d.log(name).Path(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.cli.Write("main.tf", string(acctest.Must(os.ReadFile("testdata/workingday/main.tf"))(t)))
	t.Cleanup(func() {
		if t.Failed() {
			_, _ = d.terraform().Run("destroy", "-auto-approve", "-no-color")
		}
	})
	return d
}

// addImages adds images of the program alone (static, job), one whose entrypoint prepares as root and goes on as another user, and later
// versions of what the lab has.
func (d *workingDay) addImages(apps lab.Applications) {
	d.Helper()
	path := filepath.Join(d.folder, "program")
	build := exec.CommandContext(d.Context(), "go", "build", "-o", path, "./testdata/workingday/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		d.Fatalf("build the program: %v: %s", err, out)
	}
	kernel := acctest.Must(d.lab.Kernel(d.Context()))(d.T)
	program := lab.ImageLayer{Programs: map[string][]byte{"usr/bin/program": acctest.Must(os.ReadFile(path))(d.T)}}
	script := lab.ImageLayer{Programs: map[string][]byte{
		"bin/busybox": acctest.Must(os.ReadFile(kernel.BusyBox))(d.T), "entrypoint.sh": []byte(`#!/bin/busybox sh
set -e
if [ "$(/bin/busybox id -u)" = 0 ]; then
  /bin/busybox mkdir -p /data/own && /bin/busybox chown 1000 /data/own
  exec /usr/bin/program as 1000 /entrypoint.sh "$@"
fi
echo start >> /data/own/starts
echo "starts: $(/bin/busybox wc -l < /data/own/starts)" > /dev/stdout
exec "$@"
`),
	}}
	base, later := lab.ImageLayer{Archive: apps.Files.Base}, lab.ImageLayer{Files: map[string][]byte{"etc/later": []byte("2")}}
	add := func(name, tag string, command []string, configure func(*v1.Config), layers ...lab.ImageLayer) {
		image := acctest.Must(d.lab.Registry(d.Context()))(d.T)
		d.images[name+":"+tag] = acctest.Must(image.AddImage(d.Context(), lab.ImageSpec{
			Repository: "day/" + name, Tag: tag, Entrypoint: command, Layers: layers, Configure: configure,
		}))(d.T).Reference
	}
	add("web", "2", []string{"/usr/sbin/nginx", "-g", "daemon off;"}, func(c *v1.Config) { c.StopSignal = "SIGQUIT" }, base, lab.ImageLayer{Archive: apps.Files.Web}, later)
	add("database", "2", []string{"/usr/local/bin/entrypoint.sh"}, func(c *v1.Config) { c.User, c.StopSignal = "postgres", "SIGINT" }, base, lab.ImageLayer{Archive: apps.Files.Database}, later)
	add("kernel", "2", nil, nil, acctest.Must(lab.KernelLayer(kernel))(d.T), later)
	for tag, arguments := range map[string][]string{"1": {"1", "0"}, "2": {"1", "3"}, "3": {"600", "0"}} {
		add("job", tag, append([]string{"/usr/bin/program", "job"}, arguments...), nil, program)
	}
	add("static", "1", []string{"/usr/bin/program", "serve"}, func(c *v1.Config) { c.User = "65532:65532" }, program)
	add("script", "1", []string{"/entrypoint.sh"}, func(c *v1.Config) { c.Cmd = []string{"/usr/bin/program", "serve"} }, script, program)
}

func (d *workingDay) log(name string) acctest.Console {
	return acctest.ConsoleAt(filepath.Join(d.folder, name+".log"))
}

func (d *workingDay) terraform() acctest.CLI {
	d.Helper()
	var all []string
	for name, value := range d.variables {
		text, isText := value.(string)
		if !isText {
			text = string(acctest.Must(json.Marshal(value))(d.T))
		}
		all = append(all, "TF_VAR_"+name+"="+text)
	}
	return d.cli.With(all...)
}

func (d *workingDay) apply() string {
	d.Helper()
	out := d.terraform().Must("apply", "-auto-approve", "-no-color")
	if plan := d.terraform().Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		d.Errorf("the plan after that is not empty:\n%s", plan)
	}
	return out
}

// update gives machines the images of another tag.
func (d *workingDay) update(tag string, names ...string) string {
	d.Helper()
	for _, name := range names {
		d.variables["images"].(map[string]string)[name] = d.images[name+":"+tag]
	}
	return d.apply()
}

// answers waits until a command on the host succeeds, and returns what it has printed.
func (d *workingDay) answers(command string) (out string) {
	d.Helper()
	acctest.Eventually(d.T, command, func() (err error) {
		out, err = d.host.Run(d.Context(), command)
		return err
	})
	return strings.TrimSpace(out)
}

func (d *workingDay) rows(want string) {
	d.Helper()
	if got := d.answers(d.client + `"SELECT text FROM visits"`); got != want {
		d.Errorf("the database has the rows %q, not %q", got, want)
	}
}

func (d *workingDay) page() {
	d.Helper()
	d.answers("curl --silent --fail --max-time 5 http://" + strings.TrimSpace(d.terraform().Must("output", "-raw", "web")) + "/")
}

func (d *workingDay) runs() []string {
	d.Helper()
	return strings.Fields(acctest.Must(d.host.Virsh(d.Context(), "list", "--name"))(d.T))
}

// awaitOff waits until the machine is off; all of them, without a name.
func (d *workingDay) awaitOff(name string) {
	d.Helper()
	acctest.Eventually(d.T, name+" is off", func() error {
		if now := d.runs(); slices.Contains(now, name) || name == "" && len(now) > 0 {
			return fmt.Errorf("there run %q", now)
		}
		return nil
	})
}

// A web server, a database, a program alone, one with an entrypoint script and a job, in images as they are: made, updated, grown, moved to
// a new kernel, and started again after the host's reboot and after a power cut.
func TestAccVirtualMachine_WorkingDay(t *testing.T) {
	d := newWorkingDay(t)
	d.apply()
	d.page()
	d.answers(d.client + `"CREATE TABLE visits (text text); INSERT INTO visits VALUES ('first')"`)
	d.log("static").Await(t, "serving as 65532")
	d.log("script").Await(t, "starts: 1")
	d.log("job").Await(t, "virtclaim: exit 0")
	d.awaitOff("job")

	out := d.update("2", "web", "database", "job")
	made, gone := strings.Index(out, "virtclaim_virtual_machine.web: Creation complete"), strings.Index(out, "virtclaim_virtual_machine.web (deposed object")
	if made < 0 || gone < made {
		t.Errorf("the old web server went before the new one was there:\n%s", out)
	}
	d.page()
	d.rows("first")
	d.log("job").Await(t, "virtclaim: exit 3")
	d.awaitOff("job")

	d.variables["size"] = "256Mi"
	d.update("2", "kernel")
	says(t, d.terraform().Must("output", "pending"), `"boot"`)
	d.variables["allow_restart"] = true
	d.apply()
	d.log("database").Await(t, "the file system on /var/lib/postgresql/data has grown from")
	d.rows("first")

	for _, name := range d.runs() {
		_ = acctest.Must(d.host.Virsh(t.Context(), "shutdown", name))(t)
	}
	d.awaitOff("")
	if err := d.host.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.host.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.apply()
	d.page()
	d.rows("first")
	if ran := d.log("job").Lines("job begins"); len(ran) != 2 {
		t.Errorf("the job ran again: %q", ran)
	}

	d.update("3", "job")
	d.log("job").Await(t, "job begins for 600")
	d.answers(d.client + `"INSERT INTO visits VALUES ('before the cut')"`)
	for _, name := range d.runs() {
		_ = acctest.Must(d.host.Virsh(t.Context(), "destroy", name))(t)
	}
	d.apply()
	d.log("job").AwaitN(t, "job begins for 600", 2)
	d.rows("first\nbefore the cut")
	d.terraform().Must("destroy", "-auto-approve", "-no-color")
}
