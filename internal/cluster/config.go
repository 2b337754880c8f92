// Package cluster is the Kubernetes client: its configuration, the reads and watches that virtclaim needs, and its writes: a patch of a
// claim, and the pods that make volumes, with their Secrets.
package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	userAgent = "terraform-provider-virtclaim"
	execGroup = "client.authentication.k8s.io/"
)

// Config configures the API server and its credentials. Its fields are those of the hashicorp/kubernetes provider; empty means not set.
// They override the kubeconfig files.
type Config struct {
	// ConfigPath is one kubeconfig file, ConfigPaths are several that are merged. A leading ~/ is the home directory.
	ConfigPath  string
	ConfigPaths []string

	ConfigContext         string
	ConfigContextAuthInfo string
	ConfigContextCluster  string

	// Host is the API server's URL; the scheme defaults to https.
	Host     string
	Token    string
	Username string
	Password string
	// ClientCertificate, ClientKey and ClusterCACertificate are PEM.
	ClientCertificate    string
	ClientKey            string
	ClusterCACertificate string
	TLSServerName        string
	Insecure             bool
	ProxyURL             string
	// Exec is a program that returns credentials; nil means none.
	Exec *Exec
}

// Exec is a client-go credential plugin. It never gets a terminal.
type Exec struct {
	APIVersion string
	Command    string
	Args       []string
	Env        map[string]string
}

// ConfigError is the error of a field of a Config.
type ConfigError struct {
	// Field is the field's name in the provider's configuration, such as config_path; empty if it is no single field.
	Field string
	Err   error
}

func (e *ConfigError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// New creates a client from c. It reads the files of c but connects to no server. Its errors are ConfigErrors.
func New(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	files, err := c.load()
	if err != nil {
		return nil, err
	}
	if err := c.checkNames(files); err != nil {
		return nil, err
	}
	restConfig, err := clientcmd.NewNonInteractiveClientConfig(*files, c.ConfigContext, c.overrides(), nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, &ConfigError{Field: "config_context", Err: errors.New("the kubeconfig has no current context: name one, or set host")}
	}
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	if strings.ContainsAny(restConfig.Host, "@?#") {
		return nil, &ConfigError{Err: fmt.Errorf("the cluster's server in the kubeconfig %w", checkURL(restConfig.Host))}
	}
	restConfig.UserAgent = userAgent
	restConfig.QPS = -1 // Terraform limits its own parallelism; client-go's limit of five requests a second would be the bottleneck.
	return dialer(restConfig)
}

func dialer(c *rest.Config) (*Client, error) {
	httpClient, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	objects, err := kubernetes.NewForConfigAndClient(c, httpClient)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	meta, err := metadata.NewForConfigAndClient(c, httpClient)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	client := NewForClients(c.Host, objects, meta)
	client.Unverified, client.anonymous = isUnverified(c), isAnonymous(c)
	return client, nil
}

// check checks what needs no kubeconfig.
func (c Config) check() error {
	if c.ConfigPath == "" && len(c.ConfigPaths) == 0 && c.Host == "" {
		return &ConfigError{Err: errors.New("no Kubernetes cluster is configured: set config_path to a kubeconfig file, or set host")}
	}
	if c.ConfigPath != "" && len(c.ConfigPaths) > 0 {
		return &ConfigError{Field: "config_paths", Err: errors.New("conflicts with config_path: set one of them")}
	}
	for _, u := range []struct{ field, value string }{{"host", c.server()}, {"proxy_url", c.ProxyURL}} {
		if err := checkURL(u.value); u.value != "" && err != nil {
			return &ConfigError{Field: u.field, Err: err}
		}
	}
	if c.Insecure && c.ClusterCACertificate != "" {
		return &ConfigError{
			Field: "insecure",
			Err:   errors.New("conflicts with cluster_ca_certificate: an unchecked certificate needs no authority"),
		}
	}
	if c.ClusterCACertificate != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.ClusterCACertificate)) {
		return &ConfigError{Field: "cluster_ca_certificate", Err: errors.New("holds no certificate in PEM form")}
	}
	if err := c.checkClientCertificate(); err != nil {
		return err
	}
	return c.Exec.check()
}

// checkURL checks a URL. Its errors contain no part of it, because it may contain a password, also if it can't be parsed.
func checkURL(s string) error {
	parsed, err := url.Parse(s)
	switch {
	case err == nil && parsed.User != nil, strings.Contains(s, "@"):
		return errors.New("has a user name or a password in the URL, which errors and logs would show. Take it out: credentials for the " +
			"API server have attributes of their own, those for a proxy belong in the environment (HTTPS_PROXY)")
	case strings.ContainsAny(s, "?#"):
		return errors.New("has a query or a fragment in the URL, which errors and logs would show. Take it out, from the ? or # on: the " +
			"API server wants none, and a token has an attribute of its own")
	case err != nil || parsed.Host == "":
		return errors.New("it is no URL; an example is https://192.0.2.1:6443")
	}
	return nil
}

// isUnverified reports whether the server's identity is not verified.
func isUnverified(c *rest.Config) bool {
	return c.Insecure || strings.HasPrefix(strings.ToLower(c.Host), "http://")
}

// isAnonymous reports whether no credentials are sent.
func isAnonymous(c *rest.Config) bool {
	return c.BearerToken+c.BearerTokenFile+c.Username+c.CertFile+string(c.CertData) == "" && c.ExecProvider == nil && c.AuthProvider == nil
}

// check checks the apiVersion, which client-go would refuse without naming its source.
func (e *Exec) check() error {
	switch {
	case e == nil:
		return nil
	case e.Command == "":
		return &ConfigError{Field: "exec", Err: errors.New("names no command")}
	case e.APIVersion != execGroup+"v1" && e.APIVersion != execGroup+"v1beta1":
		return &ConfigError{
			Field: "exec",
			Err:   fmt.Errorf("api_version %q is not known: use %sv1 or %[2]sv1beta1", e.APIVersion, execGroup),
		}
	}
	return nil
}

func (c Config) checkClientCertificate() error {
	switch {
	case c.ClientCertificate == "" && c.ClientKey == "":
		return nil
	case c.ClientKey == "":
		return &ConfigError{Field: "client_certificate", Err: errors.New("needs client_key beside it")}
	case c.ClientCertificate == "":
		return &ConfigError{Field: "client_key", Err: errors.New("needs client_certificate beside it")}
	}
	if _, err := tls.X509KeyPair([]byte(c.ClientCertificate), []byte(c.ClientKey)); err != nil {
		return &ConfigError{Field: "client_certificate", Err: err}
	}
	return nil
}

func (c Config) server() string {
	if c.Host == "" || strings.Contains(c.Host, "://") {
		return c.Host
	}
	return "https://" + c.Host
}

func (c Config) overrides() *clientcmd.ConfigOverrides {
	o := &clientcmd.ConfigOverrides{
		CurrentContext: c.ConfigContext,
		Context:        api.Context{AuthInfo: c.ConfigContextAuthInfo, Cluster: c.ConfigContextCluster},
		ClusterInfo: api.Cluster{
			Server: c.server(), TLSServerName: c.TLSServerName, InsecureSkipTLSVerify: c.Insecure, ProxyURL: c.ProxyURL,
			CertificateAuthorityData: []byte(c.ClusterCACertificate),
		},
		AuthInfo: api.AuthInfo{
			Token: c.Token, Username: c.Username, Password: c.Password,
			ClientCertificateData: []byte(c.ClientCertificate), ClientKeyData: []byte(c.ClientKey),
		},
	}
	if c.Exec != nil {
		o.AuthInfo.Exec = &api.ExecConfig{
			APIVersion: c.Exec.APIVersion, Command: c.Exec.Command, Args: c.Exec.Args,
			InteractiveMode: api.NeverExecInteractiveMode,
		}
		for name, value := range c.Exec.Env {
			o.AuthInfo.Exec.Env = append(o.AuthInfo.Exec.Env, api.ExecEnvVar{Name: name, Value: value})
		}
	}
	return o
}
