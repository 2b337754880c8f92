//go:build acc

package volumebinding_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// apiTap is between the provider and the API server. After the nth request that changes something it calls fault, before the provider has the
// answer.
type apiTap struct {
	// URL and CA are for the provider.
	URL, CA string

	mu    sync.Mutex
	all   []*http.Request
	seen  []string
	nth   int
	fault func(w http.ResponseWriter)
}

// tapAPI is a tap with the credentials of an administrator, or only those that requests have.
func tapAPI(t *testing.T, l *lab.Lab, asAdmin bool) *apiTap {
	t.Helper()
	config := acctest.Must(clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig))(t)
	if !asAdmin {
		config = rest.AnonymousClientConfig(config)
	}
	to := acctest.Must(url.Parse(config.Host))(t)
	tap := &apiTap{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = acctest.Must(rest.TransportFor(config))(t)
	proxy.FlushInterval = -1
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tap.note(r)
		if r.Method == http.MethodGet {
			proxy.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if fault := tap.count(r); fault != nil {
			fault(w)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	}))
	t.Cleanup(web.CloseClientConnections)
	t.Cleanup(web.Close)
	tap.URL, tap.CA = web.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	return tap
}

func (a *apiTap) note(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, r.Clone(context.Background()))
}

func (a *apiTap) count(r *http.Request) func(http.ResponseWriter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, r.Method+" "+r.URL.Path)
	if len(a.seen) != a.nth {
		return nil
	}
	return a.fault
}

// arm forgets what was seen.
func (a *apiTap) arm(nth int, fault func(http.ResponseWriter)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen, a.nth, a.fault = nil, nth, fault
}

// fired is whether the fault has happened, and after which request.
func (a *apiTap) fired() (request string, yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nth == 0 || len(a.seen) < a.nth {
		return strings.Join(a.seen, ", "), false
	}
	return a.seen[a.nth-1], true
}

// killProvider kills the providers of a running Terraform.
func killProvider(terraform *exec.Cmd) error {
	return exec.CommandContext(context.Background(), "pkill", "-KILL", "-P", strconv.Itoa(terraform.Process.Pid)).Run()
}

// At each step of create, update and destroy the provider is killed, loses an answer, or finds the pod or libvirtd killed. The next apply or destroy
// goes on: there is never a second volume, and nothing is left in the end.
func TestAccVolumeBinding_DynamicInterrupted(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-faults")
	acctest.Claim(t, l, "dynamic-faults", "made", acctest.LUN(t, l, true, ""))
	c.say("answer", "pvc: {claimName: made}")
	tap := tapAPI(t, l, true)
	config := strings.Replace(acctest.Provider(l, "faults"), fmt.Sprintf("config_path = %q", l.Cluster.Kubeconfig), fmt.Sprintf("host = %q, cluster_ca_certificate = %q", tap.URL, tap.CA), 1) +
		binding(c.source(`size = "1Gi"`, ""), "", "host-a")

	var running *exec.Cmd
	faults := map[string]struct {
		do      func() error
		mend    func() error
		answers bool // the provider gets the answer
	}{
		"provider": {do: func() error { return killProvider(running) }},
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
					tap.arm(0, nil)
					if command != "apply" {
						cli.Must("apply", "-auto-approve", "-no-color")
					}
					do := command
					if command == "update" {
						cli.Replace("main.tf", "scheme ", "env = { A = \"b\" }\n scheme ")
						do = "apply"
					}
					tap.arm(nth, func(http.ResponseWriter) {
						if err := f.do(); err != nil {
							t.Error(err)
						}
						if !f.answers {
							panic(http.ErrAbortHandler)
						}
					})
					terraform, output := cli.Start(do, "-auto-approve", "-no-color")
					running = terraform
					err := terraform.Wait()
					request, fired := tap.fired()
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
					tap.arm(0, nil)
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
	tap := tapAPI(t, l, false)
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
	used := map[string]bool{}
	for _, r := range tap.all {
		if right := rightOf(r); strings.Contains(right, " pods") || strings.HasSuffix(right, " secrets") {
			used[right] = true
		}
	}
	if diff := cmp.Diff(rights, used); diff != "" {
		t.Errorf("-in the manifest, +used: %s", diff)
	}
}

// rightOf is the verb and the resource of a request.
func rightOf(r *http.Request) string {
	_, rest, _ := strings.Cut(r.URL.Path, "/namespaces/dynamic-rights/")
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
