package cluster

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: first
clusters:
- {name: c1, cluster: {server: "https://one.example:6443"}}
- {name: c2, cluster: {server: "https://two.example:6443"}}
users:
- {name: u1, user: {token: top-secret-token}}
contexts:
- {name: first, context: {cluster: c1, user: u1}}
- {name: second, context: {cluster: c2, user: u1}}
`

func write(t *testing.T, folder, content string) string {
	t.Helper()
	path := filepath.Join(folder, "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNew_ServerPrecedence(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	// None of these may have an effect: only the configuration counts.
	t.Setenv("KUBECONFIG", "/nonexistent")
	t.Setenv("KUBERNETES_MASTER", "https://wrong.example")
	path := write(t, home, kubeconfig)
	other := write(t, t.TempDir(), `{apiVersion: v1, kind: Config, clusters: [{name: c3, cluster: {server: "https://three.example"}}]}`)
	tests := []struct {
		name   string
		config Config
		want   string
	}{
		{"current context", Config{ConfigPath: path}, "https://one.example:6443"},
		{"home folder", Config{ConfigPath: "~/config"}, "https://one.example:6443"},
		{"other context", Config{ConfigPath: path, ConfigContext: "second"}, "https://two.example:6443"},
		{"other cluster", Config{ConfigPath: path, ConfigContextCluster: "c2"}, "https://two.example:6443"},
		{"cluster of another file", Config{ConfigPaths: []string{path, other}, ConfigContextCluster: "c3"}, "https://three.example"},
		{"host over the file", Config{ConfigPath: path, Host: "https://four.example"}, "https://four.example"},
		{"host alone", Config{Host: "https://192.0.2.1:6443", Token: "t"}, "https://192.0.2.1:6443"},
		{"host without scheme", Config{Host: "192.0.2.1:6443"}, "https://192.0.2.1:6443"},
		{"exec", Config{Host: "https://a", Exec: &Exec{
			APIVersion: "client.authentication.k8s.io/v1", Command: "get-token", Args: []string{"x"}, Env: map[string]string{"A": "b"},
		}}, "https://a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := New(tt.config)
			if err != nil {
				t.Fatal(err)
			}
			if client.server != tt.want {
				t.Errorf("the server is %s, not %s", client.server, tt.want)
			}
		})
	}
}

func TestNew_ErrorsNameTheField(t *testing.T) {
	path := write(t, t.TempDir(), kubeconfig)
	malformed := write(t, t.TempDir(), "users: [{name: u, user: {token: top-secret-token}}")
	mistyped := write(t, t.TempDir(), "users: {token: top-secret-token}")
	withPassword := write(t, t.TempDir(), strings.ReplaceAll(kubeconfig, "https://", "https://me:top-secret-token@"))
	withQuery := write(t, t.TempDir(), strings.ReplaceAll(kubeconfig, ":6443", ":6443/?token=top-secret-token"))
	noContext := write(t, t.TempDir(), strings.Replace(kubeconfig, "current-context: first", "", 1))
	staleContext := write(t, t.TempDir(), strings.Replace(kubeconfig, "current-context: first", "current-context: gone", 1))
	tests := []struct {
		name   string
		config Config
		field  string
		want   string
	}{
		{"nothing", Config{}, "", "set config_path to a kubeconfig file"},
		{"token alone", Config{Token: "t"}, "", "no Kubernetes cluster is configured"},
		{"missing file", Config{ConfigPath: "/nonexistent"}, "config_path", "the kubeconfig /nonexistent can't be used: open /nonexistent: no such file"},
		{"folder", Config{ConfigPath: t.TempDir()}, "config_path", "is a directory"},
		{"malformed file", Config{ConfigPath: malformed}, "config_path", malformed},
		{"mistyped file", Config{ConfigPath: mistyped}, "config_path", mistyped},
		{"one of two missing", Config{ConfigPaths: []string{path, "/nonexistent"}}, "config_paths", "/nonexistent"},
		{"path and paths", Config{ConfigPath: path, ConfigPaths: []string{path}}, "config_paths", "conflicts with config_path"},
		{"unknown context", Config{ConfigPath: path, ConfigContext: "third"}, "config_context", `no context "third"; it has first, second`},
		{"stale current context", Config{ConfigPath: staleContext}, "config_context", `no context "gone"`},
		{"no current context", Config{ConfigPath: noContext}, "config_context", "no current context: name one"},
		{"context without file", Config{Host: "https://a", ConfigContext: "x"}, "config_context", "it has none"},
		{"unknown user", Config{ConfigPath: path, ConfigContextAuthInfo: "u9"}, "config_context_auth_info", `no user "u9"; it has u1`},
		{"unknown cluster", Config{ConfigPath: path, ConfigContextCluster: "c9"}, "config_context_cluster", `no cluster "c9"; it has c1, c2`},
		{"bad host", Config{Host: "https://"}, "host", "is no URL"},
		{"bad proxy", Config{Host: "https://a", ProxyURL: "proxy"}, "proxy_url", "is no URL"},
		{"password in host", Config{Host: "https://me:top-secret-token@a"}, "host", "a password in the URL"},
		{"password in host without a scheme", Config{Host: "me:top-secret-token@a"}, "host", "a password in the URL"},
		{"password in a host that is no URL", Config{Host: "https://me:top-secret-token%zz@a"}, "host", "a password in the URL"},
		{"host that is no URL", Config{Host: "https://top-secret-token%zz/"}, "host", "is no URL"},
		{"password in proxy", Config{Host: "https://a", ProxyURL: "http://me:top-secret-token@proxy"}, "proxy_url", "a password in the URL"},
		{"password in kubeconfig", Config{ConfigPath: withPassword}, "", "the cluster's server in the kubeconfig has a user name or a password"},
		{"token in host", Config{Host: "https://a/?token=top-secret-token"}, "host", "a query or a fragment in the URL"},
		{"token in a host without a scheme", Config{Host: "a?token=top-secret-token"}, "host", "a query or a fragment in the URL"},
		{"token in a host that is no URL", Config{Host: "https://a%zz?token=top-secret-token"}, "host", "a query or a fragment in the URL"},
		{"fragment in host", Config{Host: "https://a#top-secret-token"}, "host", "a query or a fragment in the URL"},
		{"query in proxy", Config{Host: "https://a", ProxyURL: "http://proxy?top-secret-token"}, "proxy_url", "a query or a fragment in the URL"},
		{"query in kubeconfig", Config{ConfigPath: withQuery}, "", "the cluster's server in the kubeconfig has a query or a fragment"},
		{"bad authority", Config{Host: "https://a", ClusterCACertificate: "x"}, "cluster_ca_certificate", "PEM"},
		{"authority and insecure", Config{Host: "https://a", ClusterCACertificate: "x", Insecure: true}, "insecure", "conflicts"},
		{"certificate without key", Config{Host: "https://a", ClientCertificate: "x"}, "client_certificate", "needs client_key"},
		{"key without certificate", Config{Host: "https://a", ClientKey: "x"}, "client_key", "needs client_certificate"},
		{"bad certificate", Config{Host: "https://a", ClientCertificate: "x", ClientKey: "top-secret-token"}, "client_certificate", "PEM"},
		{"exec without command", Config{Host: "https://a", Exec: &Exec{APIVersion: execGroup + "v1"}}, "exec", "names no command"},
		{"exec of unknown version", Config{Host: "https://a", Exec: &Exec{APIVersion: "v1", Command: "x"}}, "exec", `api_version "v1" is not known`},
		{"two ways to log in", Config{Host: "https://a", Token: "top-secret-token", Username: "u", Password: "top-secret-token"}, "", "more than one authentication method"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.config)
			var blamed *ConfigError
			if !errors.As(err, &blamed) || blamed.Field != tt.field || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want one about %q with %q", err, tt.field, tt.want)
			}
			if strings.Contains(err.Error(), "top-secret-token") {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
}

func TestNew_UnthrottledWithUserAgent(t *testing.T) {
	agents := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents <- r.UserAgent()
		http.NotFound(w, r)
	}))
	defer server.Close()
	client, err := New(Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.Volume(t.Context(), "x")
	if agent := <-agents; agent != "terraform-provider-virtclaim" {
		t.Errorf("the user agent is %q", agent)
	}
	if limiter := client.objects.(*kubernetes.Clientset).CoreV1().RESTClient().GetRateLimiter(); limiter != nil {
		t.Errorf("there is a rate limiter: %v", limiter)
	}
}
