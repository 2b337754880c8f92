//go:build acc

package disk_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// stays expects that a disk is kept, and perhaps updated.
func stays(update bool) plancheck.PlanCheck {
	if update {
		return planned(theDisk, plancheck.ResourceActionUpdate)
	}
	return planned(theDisk, plancheck.ResourceActionNoop)
}

// portal is another portal of the lab's iSCSI server.
func portal(t *testing.T, l *lab.Lab) string {
	t.Helper()
	return strings.Replace(l.Target.Portal, "127.0.0.1", "localhost", 1)
}

func TestAccDisk_StaysWhenMasterAddressChanges(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "the master")
	untouched(t, lun.Path)
	config := func(hosts, portal string, version int) string {
		return acctest.Provider(l, "disks") + fmt.Sprintf(`
resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = [%s]
  access_mode = "read-shared"
  source = { iscsi = { portal = %q, iqn = %q, lun = %d, username = %q, password_wo = %q, password_wo_version = %d } }
}
`, hosts, portal, lun.IQN, lun.Number, l.Target.Username, l.Target.Password, version) +
			disk("root", over("copy-on-write", "virtclaim_volume_binding.golden")) +
			bare("", on("root", theDisk, ""))
	}
	sameRun := starts(t, l)(1)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(`"host-a"`, l.Target.Portal, 1), Check: sameRun},
			{Config: config(`"host-a", "host-b"`, l.Target.Portal, 1), ConfigPlanChecks: pre(stays(true)), Check: sameRun},
			{Config: config(`"host-a", "host-b"`, portal(t, l), 1), ConfigPlanChecks: pre(stays(true)), Check: sameRun},
			{Config: config(`"host-a", "host-b"`, portal(t, l), 2), ConfigPlanChecks: pre(stays(false)), Check: sameRun},
			destroyBare(t, l, config(`"host-a", "host-b"`, portal(t, l), 2)),
		},
	})
}

func TestAccDisk_StaysWhenClaimMovesOrGrows(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "the master")
	spec := lab.ClaimSpec{Namespace: "disks", Name: "golden", LUN: lun}
	acctest.AddClaim(t, l, spec)
	config := acctest.Provider(l, "disks") + binding("golden", "read-shared", "host-a") +
		disk("root", over("copy-on-write", "virtclaim_volume_binding.golden")) + bare("", on("root", theDisk, ""))
	sameRun := starts(t, l)(1)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: sameRun},
			{
				PreConfig: func() { remakeVolume(t, l, spec, portal(t, l)) },
				Config:    config, ConfigPlanChecks: pre(stays(true)), Check: sameRun,
			},
			{
				PreConfig: func() { acctest.GrowClaim(t, l, spec, 128<<20) },
				Config:    config, ConfigPlanChecks: pre(stays(true)),
				Check: resource.ComposeTestCheckFunc(sameRun,
					resource.TestCheckResourceAttr("virtclaim_volume_binding.golden", "volume.capacity", "134217728"),
					resource.TestCheckResourceAttr(theDisk, "volume.capacity", "67108864")),
			},
			destroyBare(t, l, config),
		},
	})
}

// remakeVolume recreates a claim's PersistentVolume, for the same logical unit at another portal.
func remakeVolume(t *testing.T, l *lab.Lab, spec lab.ClaimSpec, portal string) {
	t.Helper()
	ctx, volumes := context.Background(), l.Cluster.Client.CoreV1().PersistentVolumes()
	old, err := volumes.Get(ctx, spec.VolumeName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := volumes.Delete(ctx, spec.VolumeName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Kubernetes protects a volume that is bound.
	release := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := volumes.Patch(ctx, spec.VolumeName(), types.MergePatchType, release, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	recreated := l.Volume(spec)
	recreated.Spec.ISCSI.TargetPortal, recreated.Spec.ClaimRef = portal, old.Spec.ClaimRef
	acctest.Eventually(t, "the volume is recreated", func() error {
		_, err := volumes.Create(ctx, recreated, metav1.CreateOptions{})
		return err
	})
	// Without its volume the claim is temporarily lost.
	acctest.Eventually(t, "volume and claim are bound", func() error {
		v, err := volumes.Get(ctx, spec.VolumeName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		c, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims(spec.Namespace).Get(ctx, spec.Name, metav1.GetOptions{})
		if err == nil && (v.Status.Phase != corev1.VolumeBound || c.Status.Phase != corev1.ClaimBound) {
			err = fmt.Errorf("they are %s and %s", v.Status.Phase, c.Status.Phase)
		}
		return err
	})
}

func TestAccDisk_OtherClaimReplacesWithWarning(t *testing.T) {
	l := acctest.Lab(t)
	for _, name := range []string{"one", "two"} {
		acctest.Claim(t, l, "disks", name, acctest.LUN(t, l, false, name))
	}
	config := func(claim string) string {
		return strings.ReplaceAll(binding(claim, "read-shared", "host-a"), fmt.Sprintf("%q {", claim), `"golden" {`) +
			disk("root", over("copy-on-write", "virtclaim_volume_binding.golden"))
	}
	named := func(claim string) string { // the binding's own name stays
		return strings.Replace(config(claim), fmt.Sprintf("name        = %q", claim), `name        = "golden"`, 1)
	}
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "disks"))
	cli.Write("main.tf", named("one"))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", named("two"))
	plan := cli.Must("plan", "-no-color")
	acctest.Contains(t, plan, "virtclaim_volume_binding.golden must be replaced", "virtclaim_disk.root must be replaced")
	if !message("The content of disk host-a/ssd/root is lost", "Replacing disk host-a/ssd/root").MatchString(plan) {
		t.Error("the plan does not say what is lost:", plan)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Error("a second plan is not empty:", plan)
	}
	gone := cli.Must("destroy", "-auto-approve", "-no-color")
	if !message("The content of disk host-a/ssd/root is lost", "Destroying disk host-a/ssd/root").MatchString(gone) {
		t.Error("the destroy does not say what is lost:", gone)
	}
}

// A claim that does not exist at plan leaves the master unknown; if it turns out to be another one, that is an error.
func TestAccDisk_MasterChangedDuringApply(t *testing.T) {
	l := acctest.Lab(t)
	one, two := acctest.LUN(t, l, false, "one"), acctest.LUN(t, l, false, "two")
	acctest.Claim(t, l, "disks", "one", one)
	untouched(t, one.Path)
	untouched(t, two.Path)
	config := func(claim string) string {
		return strings.Replace(binding(claim, "read-shared", "host-a"), fmt.Sprintf("%q {", claim), `"golden" {`, 1) +
			disk("root", over("copy-on-write", "virtclaim_volume_binding.golden")) +
			bare("running = false", on("root", theDisk, ""))
	}
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "disks"))
	cli.Write("main.tf", config("one"))
	cli.Must("apply", "-auto-approve", "-no-color")
	inode := func() uint64 {
		info, err := os.Stat(file(l, "root"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	before := inode()
	later := lab.ClaimSpec{Namespace: "disks", Name: "two", LUN: two} // the plan needs the claim, but not its volume
	acctest.Must(l.Cluster.Client.CoreV1().PersistentVolumeClaims("disks").Create(t.Context(), l.Claim(later), metav1.CreateOptions{}))(t)
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveClaim(ctx, later) })
	cli.Write("main.tf", config("two"))
	if plan := cli.Must("plan", "-out=saved", "-no-color"); !message("The master of disk host-a/ssd/root may be another one").MatchString(plan) {
		t.Error("the plan does not say that the master may be another one:", plan)
	}
	acctest.Must(l.Cluster.Client.CoreV1().PersistentVolumes().Create(t.Context(), l.Volume(later), metav1.CreateOptions{}))(t)
	if err := l.AwaitBound(t.Context(), "disks", "two"); err != nil {
		t.Fatal(err)
	}
	out, err := cli.Run("apply", "-no-color", "saved")
	if err == nil || strings.Contains(out, "bug in the provider") || !message("The disk changed during the apply", "source.volume of disk host-a/ssd/root").MatchString(out) {
		t.Errorf("the apply ended with %v:\n%s", err, out)
	}
	if inode() != before {
		t.Error("the disk was recreated")
	}
	acctest.Contains(t, cli.Must("plan", "-no-color"), "virtclaim_disk.root must be replaced")
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

func TestAccDisk_GrowsAndNeverShrinks(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := func(size, running string) string {
		return acctest.Provider(l, "disks") + disk("root", fmt.Sprintf("size = %q", size)) +
			vm(l, console, run("while sleep 1; do cat /sys/block/vda/size; done"), "force_stop = true\n  running = "+running, on("root", theDisk, ""))
	}
	sized := func(bytes int64) resource.TestCheckFunc {
		return func(*terraform.State) error {
			out, err := exec.CommandContext(t.Context(), "qemu-img", "info", "-U", file(l, "root")).CombinedOutput()
			if err != nil || !strings.Contains(string(out), fmt.Sprintf("(%d bytes)", bytes)) {
				return fmt.Errorf("not %d bytes: %w: %s", bytes, err, out)
			}
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("64Mi", "true"), Check: func(*terraform.State) error { console.Await(t, "131072"); return nil }},
			{
				Config: config("96Mi", "true"), ConfigPlanChecks: pre(stays(true)),
				Check: func(s *terraform.State) error {
					console.Await(t, "196608") // the running guest sees it
					if console.Boots() != 1 {
						return fmt.Errorf("the guest was restarted")
					}
					return sized(96 << 20)(s)
				},
			},
			{Config: config("98304Ki", "true"), PlanOnly: true},
			{Config: config("64Mi", "true"), ExpectError: message("A disk can't shrink", "Ask for at least 96Mi")},
			{Config: config("128Mi", "false"), Check: sized(128 << 20)},
			{Config: config("160Mi", "false"), Check: sized(160 << 20)},
			{
				// It was grown outside of Terraform: it is never shrunk.
				PreConfig:   func() { virsh(t, l, "vol-resize", "root", "192M", "--pool", "ssd") },
				Config:      config("160Mi", "false"),
				ExpectError: message("A disk can't shrink", "Ask for at least 192Mi"),
			},
			// The plan only warns, since Terraform plans an apply before it destroys.
			{Config: config("160Mi", "false"), PlanOnly: true, ExpectNonEmptyPlan: true},
			{Config: config("192Mi", "false"), Check: sized(192 << 20)},
		},
	})
}

func TestAccDisk_AttributesOfNewDisksOnly(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "disks"))
	tuned := func(clusters, preallocation string) string {
		return disk("root", blank+fmt.Sprintf("\n  cluster_size = %q\n  preallocation = %q", clusters, preallocation))
	}
	cli.Write("main.tf", tuned("128Ki", "falloc"))
	cli.Must("apply", "-auto-approve", "-no-color")
	out, err := exec.CommandContext(t.Context(), "qemu-img", "info", file(l, "root")).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	acctest.Contains(t, string(out), "cluster_size: 131072", "compat: 1.1", "disk size: 64")
	cli.Write("main.tf", tuned("64Ki", "off"))
	cli.Write("provider.tf", strings.ReplaceAll(acctest.Provider(l, "disks"), `fast = "ssd"`, `fast = "rust"`))
	plan := cli.Must("plan", "-no-color")
	for _, warning := range []string{
		"cluster_size applies only at creation", "preallocation applies only at creation", "disk host-a/ssd/root stays in pool ssd",
	} {
		if !message(warning).MatchString(plan) {
			t.Errorf("%q is missing in: %s", warning, plan)
		}
	}
	acctest.Contains(t, plan, "Plan: 0 to add, 1 to change, 0 to destroy.")
	cli.Must("apply", "-auto-approve", "-no-color")
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Error("a second plan is not empty:", plan)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

func TestAccDisk_SmallerReplacementWarns(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "disks"))
	cli.Write("main.tf", disk("root", blank))
	cli.Must("apply", "-auto-approve", "-no-color")
	for what, change := range map[string][2]string{
		"usage_type": {`"fast"`, `"slow"`}, "name": {`= "root"`, `= "other"`},
	} {
		cli.Write("main.tf", strings.Replace(disk("root", `size = "32Mi"`), change[0], change[1], 1))
		plan := cli.Must("plan", "-no-color")
		if !message("virtclaim_disk.root must be replaced", "The content of disk host-a/ssd/root is lost", "Replacing disk host-a/ssd/root").MatchString(plan) {
			t.Errorf("another %s: %s", what, plan)
		}
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// All bad configurations of a group are in one plan: Terraform validates all resources before it plans any.
func TestAccDisk_InvalidConfigurations(t *testing.T) {
	l := acctest.Lab(t)
	_, source := golden(t, l, "the master")
	const from = "virtclaim_volume_binding.golden"
	type bad map[string]struct{ config, want string }
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+source)
	cli.Must("apply", "-auto-approve", "-no-color")
	torn := strings.NewReplacer(`"golden" {`, `"torn" {`, `name        = "golden"`, `name = "torn"`, "read-shared", "write-shared").Replace(source)
	for group, cases := range map[string]bad{
		"validation": {
			"blank-without-size":  {disk("blank-without-size", ""), "A blank disk without a size"},
			"source-without-mode": {disk("source-without-mode", "source = { volume = "+from+".volume }"), "A master without a copy mode"},
			"mode-without-source": {disk("mode-without-source", `copy_mode = "clone"`), "source"},
			"raw-copy":            {disk("raw-copy", over("clone", from)+"\n format = \"raw\""), "A copy is qcow2"},
			"preallocated-copy":   {disk("preallocated-copy", over("clone", from)+"\n preallocation = \"falloc\""), "Only a blank disk can be preallocated"},
			"slash":               {strings.Replace(disk("slash", blank), `= "slash"`, `= "a/b"`, 1), "must consist of letters"},
			"name-and-prefix":     {disk("name-and-prefix", blank+"\n name_prefix = \"x\""), "name_prefix"},
		},
		"plan": {
			"odd-clusters":        {disk("odd-clusters", blank+"\n cluster_size = \"65Ki\""), "Unusable cluster size"},
			"smaller-than-master": {disk("smaller-than-master", over("clone", from)+"\n size = \"32Mi\""), "Smaller than the master"},
			"no-image":            {disk("no-image", over("copy-on-write", "({ volume = merge("+from+".volume, { images = [] }) })")), "No volume"},
			"usage-type":          {strings.Replace(disk("usage-type", blank), "fast", "faster", 1), `host host-a has no usage type "faster"; it has fast, slow`},
			"unknown-host":        {strings.Replace(disk("unknown-host", blank), "host-a", "host-c", 1), `no host "host-c"`},
			"over-torn":           {torn + disk("over-torn", over("copy-on-write", "virtclaim_volume_binding.torn")), "An overlay of what others write"},
			"web":                 {bare("", on("root", from, ", ephemeral = true")), "Only a local disk can be ephemeral"},
		},
	} {
		t.Run(group, func(t *testing.T) {
			text, want := acctest.Provider(l, "disks")+source, map[string]*regexp.Regexp{}
			for name, c := range cases {
				text += c.config
				want[name] = message(c.want)
			}
			cli.Write("main.tf", text)
			acctest.ExpectErrors(t, cli.PlanErrors(), want)
		})
	}
	cli.Write("main.tf", acctest.Provider(l, "disks")) // an invalid configuration can't be destroyed either
	cli.Must("apply", "-auto-approve", "-no-color")
}

// The plan warns of an inactive pool, which a resource of the apply might start, and of overlays, because of which the apply would refuse to delete
// a master; the apply says how to start the pool.
func TestAccDisk_PlanWarnsOfWhatApplyRefuses(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("golden", "size = \"1Mi\"")+disk("over", over("copy-on-write", "virtclaim_disk.golden")))
	virsh(t, l, "pool-destroy", "ssd")
	plan := cli.Must("plan", "-no-color")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	virsh(t, l, "pool-start", "ssd")
	if !message(`The storage pool "ssd" of host host-a is not active`, "To start it: virsh pool-start 'ssd'").MatchString(plan) {
		t.Errorf("the plan does not warn:\n%s", plan)
	}
	if err == nil || !message("The disk could not be made", "Start it: virsh pool-start 'ssd'").MatchString(out) {
		t.Errorf("the apply: %v:\n%s", err, out)
	}
	if plan := cli.Must("plan", "-no-color"); strings.Contains(plan, "not active") {
		t.Errorf("a plan for an active pool warns:\n%s", plan)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	if plan := cli.Must("plan", "-no-color", "-destroy"); !message("Overlays of it: 1, such as", "ssd/over").MatchString(plan) {
		t.Errorf("the plan does not name the overlay:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
