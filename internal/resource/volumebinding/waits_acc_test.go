//go:build acc

package volumebinding_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// between runs after the plan and before the apply, like another resource of the same apply.
type between func(context.Context) error

func (b between) CheckPlan(ctx context.Context, _ plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	resp.Error = b(ctx)
}

// A claim that is created in the same apply is unknown at plan and bound at apply.
func TestAccVolumeBinding_ClaimOfSameApply(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "same", Name: "late", LUN: acctest.LUN(t, l, false, "")}
	t.Cleanup(func() {
		if err := l.RemoveClaim(context.Background(), spec); err != nil {
			t.Error(err)
		}
	})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "same") + binding(fromClaim("same", "late"), "", "host-a"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectUnknownValue(data, tfjsonpath.New("volume")),
				between(func(ctx context.Context) error { return l.AddClaim(ctx, spec) }),
			}},
			Check: resource.TestMatchResourceAttr(data, "volume.images.0.uri", regexp.MustCompile("^iscsi://")),
		}},
	})
}

func TestAccVolumeBinding_MissingClaim(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "missing")+binding(fromClaim("missing", "nowhere"), "", "host-a"))
	plan := cli.Must("plan", "-no-color")
	if !message("Warning: The volume is not there yet", "PersistentVolumeClaim missing/nowhere does not exist").MatchString(plan) {
		t.Errorf("the plan does not warn of the claim that is missing:\n%s", plan)
	}
	apply, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("Error: The volume can't be bound", "PersistentVolumeClaim missing/nowhere does not exist").MatchString(apply) {
		t.Errorf("%v; the apply does not fail for the claim that is missing:\n%s", err, apply)
	}
}

// An unbound claim is waited for until the create timeout, and then named with its class in the error.
func TestAccVolumeBinding_UnboundClaimNamesClass(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "unbound", Name: "pending", Class: "nobody-provisions", LUN: lab.LUN{Size: 1 << 20}}
	if err := l.AddNamespace(t.Context(), spec.Namespace); err != nil {
		t.Fatal(err)
	}
	claim := l.Claim(spec)
	claim.Spec.VolumeName = ""
	if _, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims(spec.Namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.RemoveClaim(context.Background(), spec); err != nil {
			t.Error(err)
		}
	})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "unbound") +
				binding(fromClaim("unbound", "pending"), `timeouts = { create = "3s" }`, "host-a"),
			ExpectError: message("unbound/pending", "Pending", "nobody-provisions"),
		}},
	})
}

// A bound claim that CDI still fills is unknown at plan, waited for at apply, and named in the error after the timeout.
func TestAccVolumeBinding_ClaimBeingFilled(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "filled", "data", acctest.LUN(t, l, false, ""))
	const phase = "cdi.kubevirt.io/storage.pod.phase"
	acctest.Annotate(t, l, "filled", "data", map[string]string{phase: "Running"})
	cli := configured(t, l, "filled", binding(fromClaim("filled", "data"), `timeouts = { create = "2s" }`, "host-a"))
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("a claim that is being filled was bound")
	}
	says(t, out, "Warning: The volume is not there yet", "filled/data is still being filled by CDI", "Error: The volume can't be bound",
		"filled/data was still being filled by CDI: its annotation "+phase+` is "Running"`)
	heldBy(t, l, "filled", "data")

	cli.Replace("main.tf", `create = "2s"`, `create = "1m"`)
	apply, output := cli.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the apply waits", func() error {
		if !strings.Contains(output(), "virtclaim_volume_binding.data: Creating...") {
			return errors.New(output())
		}
		return nil
	})
	acctest.Annotate(t, l, "filled", "data", map[string]string{phase: "Succeeded"})
	if err := apply.Wait(); err != nil {
		t.Errorf("%v\n%s", err, output())
	}
	heldBy(t, l, "filled", "data", "filled/data write-exclusive")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve")
}

// All bad configurations of a group are in one plan: Terraform validates all resources before it plans any.
func TestAccVolumeBinding_InvalidConfigurations(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "")
	acctest.AddClaim(t, l, lab.ClaimSpec{Namespace: "bad", Name: "files", LUN: lun, Filesystem: true})
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "bad", Name: "once", LUN: lun, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
	})
	const direct = `iscsi = { portal = "127.0.0.1", iqn = "iqn.2026-01.io.example:a", lun = 1, `
	files := fromClaim("bad", "files")
	type bad map[string]struct {
		config string
		want   []string
	}
	for group, cases := range map[string]bad{
		"validation": {
			"no-host":   {strings.Replace(binding(files, "", ""), `[""]`, "[]", 1), []string{"hosts", "at least 1"}},
			"no-source": {binding("", "", "host-a"), []string{"one (and only one)", "iscsi", "persistent_volume_claim", "rbd"}},
			"two-sources": {
				binding(files+"\n"+direct+"}", "", "host-a"), []string{"one (and only one)", "iscsi", "persistent_volume_claim", "rbd"},
			},
			"access-mode": {
				binding(files, `access_mode = "read-only"`, "host-a"), []string{"access_mode", "write-exclusive", "write-shared", "read-shared"},
			},
			"password-in-url": {
				binding(`http = { url = "https://u:hidden@images.example.com/debian.raw" }`, `access_mode = "read-shared"`, "host-a"),
				[]string{"source.http.url", "has a user in it"},
			},
			"nbd-without-address": {binding(`nbd = { export = "x" }`, "", "host-a"), []string{"source.nbd.server", "is missing"}},
			"ceph-without-user": {
				binding(`rbd = { monitors = ["ceph"], image = "x", key_wo = "AAAA", key_wo_version = 1 }`, "", "host-a"),
				[]string{"source.rbd.username", "is missing, but key_wo"},
			},
			"relative-path": {binding(`file = { path = "disk.img" }`, "", "host-a"), []string{"source.file.path", "disk.img"}},
			"claim-name": {
				binding(fromClaim("bad", "Not_A_Name"), "", "host-a"), []string{"claim_name", "a name as Kubernetes accepts it"},
			},
			"iqn": {
				binding(strings.Replace(direct, "iqn.2026-01.io.example:a", "disk", 1)+"}", "", "host-a"),
				[]string{"Invalid source", "source.iscsi.iqn", "disk"},
			},
			"portal": {
				binding(strings.Replace(direct, "127.0.0.1", "a b", 1)+"}", "", "host-a"), []string{"Invalid source", "a b", "no iSCSI portal"},
			},
			"user-without-password": {binding(direct+`username = "u" }`, "", "host-a"), []string{"source.iscsi.password_wo", "CHAP user"}},
		},
		"plan": {
			"filesystem-on-iscsi": {
				binding(files, "", "host-a"),
				[]string{"The volume can't be bound", "source.persistent_volume_claim", "bad/files", "volumeMode Block"},
			},
			"once-on-two-hosts": {
				binding(fromClaim("bad", "once"), `access_mode = "read-shared"`, "host-a", "host-b"),
				[]string{"The volume can't be bound", "bad/once", "read-shared", "ReadOnlyMany"},
			},
			"unknown-host": {binding(files, "", "host-z"), []string{"Unknown host", "hosts = ", "host-z", "host-a"}},
			"writing-to-web": {
				binding(`http = { url = "https://images.example.com/debian.raw" }`, "", "host-a"),
				[]string{"The volume can't be bound", "/debian.raw can only be read", "access_mode to read-shared"},
			},
		},
	} {
		t.Run(group, func(t *testing.T) {
			cli := acctest.NewCLI(t)
			text, want := acctest.Provider(l, "bad"), map[string]*regexp.Regexp{}
			for name, c := range cases {
				text += strings.ReplaceAll(c.config, `"data"`, fmt.Sprintf("%q", name))
				want[name] = message(c.want...)
			}
			cli.Write("main.tf", text)
			acctest.ExpectErrors(t, cli.PlanErrors(), want)
		})
	}
}

func TestAccVolumeBinding_NeedsCluster(t *testing.T) {
	acctest.Lab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: `provider "virtclaim" {
  hosts = { host-a = { uri = "qemu:///system" } }
}
` + binding(fromClaim("any", "claim"), "", "host-a"),
			PlanOnly: true, ExpectError: message("The volume can't be bound", "no kubernetes block", "config_path"),
		}},
	})
}

// Wrong credentials are found when the volume is measured, and nothing stays on the hosts.
func TestAccVolumeBinding_WrongCredentialsAreReverted(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	source := strings.NewReplacer("PORTAL", l.Target.Portal, "IQN", lun.IQN).Replace(
		`iscsi = { portal = "PORTAL", iqn = "IQN", lun = 1, username = "lab", password_wo = "not-the-password" }`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config:      acctest.Provider(l, "wrong") + binding(source, "", "host-a", "host-b"),
			ExpectError: message("The volume could not be bound", "host-a", "Authentication failure", "host-b"),
		}},
	})
}
