//go:build acc

package volumebinding_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// commands matches the shell commands in an error.
var commands = regexp.MustCompile(`(?m)^\s*((?:kubectl|virsh) .*)$`)

// printed are the commands of a program in an output.
func printed(out, program string) (found []string) {
	for _, m := range commands.FindAllStringSubmatch(out, -1) {
		if strings.HasPrefix(m[1], program+" ") {
			found = append(found, m[1])
		}
	}
	return found
}

// tapped is a folder whose provider is connected to host-a through a tap.
func tapped(t *testing.T, l *lab.Lab, owner, config string) (acctest.CLI, *lab.Tap) {
	t.Helper()
	cli, tap := acctest.Tapped(t, l, owner)
	cli.Write("main.tf", config)
	return cli, tap
}

// interrupt applies with a fault, after which the claim is reserved and the state is empty.
func interrupt(t *testing.T, l *lab.Lab, cli acctest.CLI, tap *lab.Tap, f lab.Fault, holder string) {
	t.Helper()
	tap.Arm(f)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if !tap.Fired() || err == nil || !isEmpty(t, cli) {
		t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
	}
	heldBy(t, l, "interrupted", "data", holder)
}

// killed are the faults between the reservation and the state, before and after the host got the credentials.
var killed = []lab.Fault{
	{Call: lab.CallSecretDefine, Nth: 1, Kill: true},
	{Call: lab.CallSecretDefine, Nth: 1, Kill: true, After: true},
}

func TestAccVolumeBinding_InterruptedWithOwnerRecovers(t *testing.T) {
	for _, f := range killed {
		t.Run(f.String(), func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "interrupted", "data", acctest.LUN(t, l, true, ""))
			cli, tap := tapped(t, l, "interrupted", binding(fromClaim("interrupted", "data"), "", "host-a"))
			interrupt(t, l, cli, tap, f, "interrupted/data write-exclusive")

			cli.Must("apply", "-auto-approve")
			heldBy(t, l, "interrupted", "data", "interrupted/data write-exclusive")
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "interrupted", "data")
		})
	}
}

func TestAccVolumeBinding_InterruptedWithoutOwnerPrintsRelease(t *testing.T) {
	for _, f := range killed {
		t.Run(f.String(), func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "interrupted", "data", acctest.LUN(t, l, true, ""))
			cli, tap := tapped(t, l, "", binding(fromClaim("interrupted", "data"), "", "host-a"))
			interrupt(t, l, cli, tap, f, "/data write-exclusive")

			out, err := cli.Run("apply", "-auto-approve", "-no-color")
			if err == nil {
				t.Fatal("what nobody owns was taken over")
			}
			says(t, out, `it is held by binding "data" of a configuration without an owner`, "To release by hand")
			release := printed(out, "kubectl")
			if len(release) != 1 {
				t.Fatalf("%d commands are printed:\n%s", len(release), out)
			}
			acctest.MustShell(t, l, release[0])
			heldBy(t, l, "interrupted", "data")
			if f.After {
				says(t, out, "has left its credentials on hosts")
				remove := printed(out, "virsh")
				if len(remove) != 1 {
					t.Fatalf("%d commands are printed:\n%s", len(remove), out)
				}
				acctest.MustShell(t, l, strings.Replace(remove[0], "virsh", "virsh -c '"+l.Hosts["host-a"].URI+"'", 1))
			}
			cli.Must("apply", "-auto-approve")
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "interrupted", "data")
		})
	}
}

// A host whose answer is lost may already have the credentials: they are removed with the reservation.
func TestAccVolumeBinding_LostAnswerIsReverted(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "interrupted", "data", acctest.LUN(t, l, true, ""))
	cli, tap := tapped(t, l, "", binding(fromClaim("interrupted", "data"), "", "host-a"))
	tap.Arm(lab.Fault{Call: lab.CallSecretDefine, Nth: 1, After: true})
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if !tap.Fired() || err == nil || !isEmpty(t, cli) {
		t.Errorf("the apply was not interrupted: %v\n%s", err, out)
	}
	heldBy(t, l, "interrupted", "data")
}

// A domain that virtclaim did not create has the storage, with its own credentials: the interrupted binding can't be assumed unused. All of
// the provider's hosts are searched, because the record doesn't have the binding's hosts.
func TestAccVolumeBinding_InterruptedIsNotAdoptedWhileUsed(t *testing.T) {
	for _, where := range []string{"host-a", "host-b"} {
		t.Run("on "+where, func(t *testing.T) {
			l := acctest.Lab(t)
			lun := acctest.LUN(t, l, true, "")
			acctest.Claim(t, l, "interrupted", "data", lun)
			cli, tap := tapped(t, l, "interrupted", binding(fromClaim("interrupted", "data"), "", "host-a"))
			interrupt(t, l, cli, tap, killed[0], "interrupted/data write-exclusive")
			if err := l.Hosts[where].DefineXML(t.Context(), theirs(lun)); err != nil {
				t.Fatal(err)
			}
			out, err := cli.Run("apply", "-auto-approve", "-no-color")
			if err == nil {
				t.Error("it was taken over")
			}
			says(t, out, "interrupted/data can't be taken over from another", "domain theirs on host "+where, "release it by hand")
			heldBy(t, l, "interrupted", "data", "interrupted/data write-exclusive")
			if _, err := l.Hosts[where].Virsh(t.Context(), "undefine", "theirs"); err != nil {
				t.Fatal(err)
			}
			cli.Must("apply", "-auto-approve")
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "interrupted", "data")
		})
	}
}

// theirs is a domain that virtclaim did not create, with that unit as its disk.
func theirs(lun lab.LUN) string {
	return fmt.Sprintf(`<domain type='qemu'>
  <name>theirs</name><memory unit='MiB'>64</memory><os><type>hvm</type></os>
  <devices>
    <disk type='network' device='disk'>
      <driver name='qemu' type='raw'/>
      <source protocol='iscsi' name='%s/%d'>
        <host name='127.0.0.1'/>
        <auth username='them'><secret type='iscsi' uuid='0d0f2f9c-7f9f-4f4e-9d0a-3c1f4a0b6a11'/></auth>
      </source>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>`, lun.IQN, lun.Number)
}

// An interrupted apply leaves a secret without its value: no machine would start with it.
func TestAccVolumeBinding_EmptySecretIsSetAgain(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "interrupted", "data", acctest.LUN(t, l, true, ""))
	cli, tap := tapped(t, l, "interrupted", binding(fromClaim("interrupted", "data"), "", "host-a")+web(l, acctest.NewConsole(t)))
	cli.Must("apply", "-auto-approve")
	virsh := func(args ...string) error {
		_, err := l.Hosts["host-a"].Virsh(t.Context(), args...)
		return err
	}
	if err := virsh("secret-undefine", idOf(t, cli)); err != nil {
		t.Fatal(err)
	}
	tap.Arm(lab.Fault{Call: lab.CallSecretDefine, Nth: 1, After: true})
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); !tap.Fired() || err == nil {
		t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
	}
	secretIs(t, l, "host-a", idOf(t, cli))
	if err := errors.Join(virsh("destroy", "web"), virsh("start", "web")); err == nil {
		t.Fatal("the secret has a value")
	}
	says(t, cli.Must("plan", "-no-color", "-target="+data), "virtclaim_volume_binding.data will be updated in-place", "credentials")
	cli.Must("apply", "-auto-approve", "-target="+data)
	if err := virsh("start", "web"); err != nil {
		t.Error(err)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "interrupted", "data")
}

// Terraform loses the private state of a binding that a killed provider was updating: the next apply still finds the binding's objects.
func TestAccVolumeBinding_KilledUpdateResumes(t *testing.T) {
	for name, source := range map[string]func(*lab.Lab, lab.LUN) string{
		"claim": func(*lab.Lab, lab.LUN) string { return fromClaim("interrupted", "data") },
		"direct": func(l *lab.Lab, lun lab.LUN) string {
			return fmt.Sprintf("iscsi = { portal = %q, iqn = %q, lun = %d, username = %q, password_wo = %q, password_wo_version = 1 }",
				l.Target.Portal, lun.IQN, lun.Number, l.Target.Username, l.Target.Password)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			lun := acctest.LUN(t, l, true, "")
			acctest.Claim(t, l, "interrupted", "data", lun)
			cli, tap := tapped(t, l, "interrupted", binding(source(l, lun), "", "host-b"))
			cli.Must("apply", "-auto-approve")
			held := holders(t, l, "interrupted", "data")
			cli.Replace("main.tf", `["host-b"]`, `["host-a", "host-b"]`)
			tap.Arm(lab.Fault{Call: lab.CallSecretDefine, Nth: 1, After: true, Kill: true})
			if out, err := cli.Run("apply", "-auto-approve", "-no-color"); !tap.Fired() || err == nil {
				t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
			}
			cli.Must("apply", "-auto-approve")
			heldBy(t, l, "interrupted", "data", held...)
			for _, host := range []string{"host-a", "host-b"} {
				secretIs(t, l, host, idOf(t, cli))
			}
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "interrupted", "data")
		})
	}
}

// If the configuration of a killed update is reverted instead of applied again, the next apply or destroy removes what the update has left
// on a host that is not in the state, also without a refresh.
func TestAccVolumeBinding_KilledUpdateIsReverted(t *testing.T) {
	for name, end := range map[string]func(acctest.CLI){
		"by an apply":   func(cli acctest.CLI) { cli.Must("apply", "-auto-approve") },
		"by a destroy":  func(cli acctest.CLI) { cli.Must("destroy", "-auto-approve") },
		"not refreshed": func(cli acctest.CLI) { cli.Must("destroy", "-auto-approve", "-refresh=false") },
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "interrupted", "data", acctest.LUN(t, l, true, ""))
			cli, tap := tapped(t, l, "interrupted", binding(fromClaim("interrupted", "data"), "", "host-b"))
			cli.Must("apply", "-auto-approve")
			cli.Replace("main.tf", `["host-b"]`, `["host-a", "host-b"]`)
			tap.Arm(lab.Fault{Call: lab.CallSecretDefine, Nth: 1, After: true, Kill: true})
			if out, err := cli.Run("apply", "-auto-approve", "-no-color"); !tap.Fired() || err == nil {
				t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
			}
			if err := secretsOn(l, map[string]int{"host-a": 1})(nil); err != nil {
				t.Fatal(err)
			}
			cli.Replace("main.tf", `["host-a", "host-b"]`, `["host-b"]`)
			end(cli)
			if err := secretsOn(l, map[string]int{"host-a": 0})(nil); err != nil {
				t.Error(err)
			}
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "interrupted", "data")
			if err := secretsOn(l, map[string]int{"host-a": 0, "host-b": 0})(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A killed replacement is in no state, but its reservation follows that of the old binding, which lives on: the next apply removes it, so
// that nothing is left in the end.
func TestAccVolumeBinding_KilledReplacementIsReverted(t *testing.T) {
	for _, f := range killed {
		t.Run(f.String(), func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "interrupted", "data", acctest.LUN(t, l, true, ""))
			cli, tap := tapped(t, l, "interrupted", binding(fromClaim("interrupted", "data"), createFirst, "host-a"))
			cli.Must("apply", "-auto-approve")
			tap.Arm(f)
			if out, err := cli.Run("apply", "-auto-approve", "-no-color", "-replace="+data); !tap.Fired() || err == nil {
				t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
			}
			says(t, cli.Must("plan", "-no-color"), "reserved", "false -> true")
			cli.Must("apply", "-auto-approve")
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			secretIs(t, l, "host-a", idOf(t, cli))
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "interrupted", "data")
			if err := secretsOn(l, map[string]int{"host-a": 0})(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// An editor of a claim writes a record that names a foreign secret, which the error must not tell the user to remove.
func TestAccVolumeBinding_ForgedRecordNamesNoSecret(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "forged", "data", acctest.LUN(t, l, true, ""))
	const theirs = "8d3c3a83-2f34-4b39-9a4d-51b6a4f4a3de"
	file := filepath.Join(t.TempDir(), "secret.xml")
	xml := "<secret><uuid>" + theirs + "</uuid><usage type='ceph'><name>of somebody else</name></usage></secret>"
	if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "secret-define", file))(t)
	acctest.Undo(t, func(ctx context.Context) error {
		_, err := l.Hosts["host-a"].Virsh(ctx, "secret-undefine", theirs)
		return err
	})
	record := fmt.Sprintf(`{"owner":"others","name":"data","nonces":["1"],"mode":"write-exclusive","claimUID":%q}`, acctest.ClaimNow(t, l, "forged", "data").UID)
	acctest.Annotate(t, l, "forged", "data", map[string]string{"virtclaim.io/binding." + theirs: record})
	cli := configured(t, l, "forged", binding(fromClaim("forged", "data"), "", "host-a"))
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || len(printed(out, "kubectl")) != 1 || len(printed(out, "virsh")) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// An apply that is killed after it created the disk.img has left a pool over the folder. The next one ends it before a tenant writes to the
// folder.
func TestAccVolumeBinding_InterruptedWithDiskImage(t *testing.T) {
	l := acctest.Lab(t)
	folder := t.TempDir()
	acctest.RefuseLinks(t, l.Hosts["host-a"], folder)
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "interrupted", Name: "data", Size: 1 << 20, Filesystem: true,
		Source: &corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "files.example.com", VolumeHandle: "1"}},
	})
	source := fmt.Sprintf("persistent_volume_claim = { namespace = %q, claim_name = %q, mount_path = %q, create_disk_image = true }", "interrupted", "data", folder)
	cli, tap := tapped(t, l, "interrupted", binding(source, "", "host-a"))
	tap.Arm(lab.Fault{Call: lab.CallVolumeCreate, Nth: 2, After: true, Kill: true}) // the first one is that of the check for an existing file
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); !tap.Fired() || err == nil {
		t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
	}
	left := func() string {
		return acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "pool-list", "--all", "--name"))(t)
	}
	if !strings.Contains(left(), "virtclaim-folder-") {
		t.Fatal("it has left nothing")
	}
	cli.Must("apply", "-auto-approve")
	if pools := left(); strings.Contains(pools, "virtclaim-folder-") {
		t.Errorf("these are left:\n%s", pools)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve")
}
