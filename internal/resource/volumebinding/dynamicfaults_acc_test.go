//go:build acc

package volumebinding_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// At each step of create, update and destroy the provider is killed, loses an answer, or finds the pod or libvirtd killed. The next apply or destroy
// goes on: there is never a second volume, and nothing is left in the end.
func TestAccVolumeBinding_DynamicInterrupted(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-faults")
	acctest.Claim(t, l, "dynamic-faults", "made", acctest.LUN(t, l, true, ""))
	c.say("answer", "pvc: {claimName: made}")
	tap := acctest.TapAPI(t, l, true)
	config := tap.Provider(acctest.Provider(l, "faults")) + binding(c.source(`size = "1Gi"`, ""), "", "host-a")

	var running *exec.Cmd
	faults := map[string]struct {
		do      func() error
		mend    func() error
		answers bool // the provider gets the answer
	}{
		"provider": {do: func() error { return acctest.KillProvider(running) }},
		"answer":   {do: func() error { return nil }},
		"pod": {answers: true, do: func() error {
			err := exec.CommandContext(context.Background(), "pkill", "-KILL", "-f", "^/volumeserver").Run()
			var none *exec.ExitError
			if errors.As(err, &none) && none.ExitCode() == 1 {
				return nil // it has not started, or has ended
			}
			return err
		}},
		"libvirtd": {
			answers: true,
			do:      func() error { return l.Hosts["host-a"].Kill(context.Background()) },
			mend:    func() error { return l.Hosts["host-a"].Start(context.Background()) },
		},
	}
	for name, f := range faults {
		for _, command := range []string{"apply", "update", "destroy"} {
			for nth := 1; ; nth++ {
				again := false
				t.Run(fmt.Sprintf("%s/%s-%d", name, command, nth), func(t *testing.T) {
					cli := acctest.NewCLI(t)
					cli.Write("main.tf", config)
					tap.Arm(0, nil)
					if command != "apply" {
						cli.Must("apply", "-auto-approve", "-no-color")
					}
					do := command
					if command == "update" {
						cli.Replace("main.tf", "scheme ", "env = { A = \"b\" }\n scheme ")
						do = "apply"
					}
					tap.Arm(nth, func() bool {
						if err := f.do(); err != nil {
							t.Error(err)
						}
						return !f.answers
					})
					terraform, output := cli.Start(do, "-auto-approve", "-no-color")
					running = terraform
					err := terraform.Wait()
					request, fired := tap.Fired()
					if again = fired; !fired && err != nil {
						t.Fatalf("without a fault: %v\n%s", err, output())
					}
					if fired && name == "provider" && err == nil {
						t.Errorf("the provider was not killed: %s", output())
					}
					if f.mend != nil && fired {
						if err := f.mend(); err != nil {
							t.Fatal(err)
						}
					}
					tap.Arm(0, nil)
					if command == "apply" {
						acctest.PutRight(t, cli, nil)
						c.volumes(1)
						c.objects(1)
					}
					cli.Must("destroy", "-auto-approve", "-no-color")
					c.volumes(0)
					c.objects(0)
					heldBy(t, l, "dynamic-faults", "made")
					if t.Failed() {
						t.Logf("the %s that was interrupted after %s: %s", command, request, output())
					}
				})
				if !again || t.Failed() {
					break
				}
			}
		}
	}
}

// The rights in provisioner.yaml are those that the pods of volumes need, beside those of reserver.yaml, and no more.
func TestAccVolumeBinding_DynamicRights(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-rights")
	acctest.Claim(t, l, "dynamic-rights", "made", acctest.LUN(t, l, true, ""))
	c.say("answer", "pvc: {claimName: made}")
	manifest := "../../cluster/rbac/provisioner.yaml"
	acctest.MustShell(t, l, "kubectl --namespace dynamic-rights apply --filename "+manifest)
	t.Cleanup(func() { acctest.MustShell(t, l, "kubectl --namespace dynamic-rights delete --filename "+manifest) })
	tap := acctest.TapAPI(t, l, false)
	config := as(t, l, acctest.Provider(l, "rights")+binding(c.source(`size = "1Gi"`, ""), "", "host-a"), "reserver")
	rest := acctest.Must(clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig))(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", strings.NewReplacer(rest.Host, tap.URL, fmt.Sprintf("%q", rest.CAData), fmt.Sprintf("%q", tap.CA)).Replace(config))

	c.say("crash", "to be explained")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("it did not crash")
	}
	says(t, out, "CrashLoopBackOff", "its last event", "to be explained")
	c.say("crash", "")
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")

	used := map[string]bool{}
	for _, r := range tap.Requests() {
		if right := rightOf(r, "dynamic-rights"); strings.Contains(right, " pods") || strings.HasSuffix(right, " secrets") {
			used[right] = true
		}
	}
	if diff := cmp.Diff(granted(t, manifest), used); diff != "" {
		t.Errorf("-in the manifest, +used: %s", diff)
	}
}

// granted are the rights of the first role of a manifest.
func granted(t *testing.T, manifest string) map[string]bool {
	t.Helper()
	rights := map[string]bool{}
	role := struct {
		Rules []rbacv1.PolicyRule
	}{}
	text, _, _ := strings.Cut(string(acctest.Must(os.ReadFile(manifest))(t)), "\n---\n")
	if err := yaml.Unmarshal([]byte(text), &role); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights[verb+" "+resource] = true
			}
		}
	}
	return rights
}

// rightOf is the verb and the resource of a request in a namespace.
func rightOf(r *http.Request, namespace string) string {
	_, rest, _ := strings.Cut(r.URL.Path, "/namespaces/"+namespace+"/")
	parts := strings.Split(rest, "/")
	verb := map[string]string{"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[r.Method]
	switch {
	case len(parts) == 1 && r.URL.Query().Get("watch") != "":
		verb = "watch"
	case len(parts) == 1 && r.Method == http.MethodGet:
		verb = "list"
	case len(parts) > 2:
		return verb + " " + parts[0] + "/" + parts[2]
	}
	return verb + " " + parts[0]
}
