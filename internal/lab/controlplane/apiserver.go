package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// startTimeout is ten times the duration of a start on a busy machine of two
// cores.
const startTimeout = 2 * time.Minute

// serveAPI runs the API server on 127.0.0.1 until ctx ends.
func serveAPI(ctx context.Context, creds credentials, port int) error {
	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(apiFlags(creds, port)); err != nil {
		return fmt.Errorf("set the API server's flags: %w", err)
	}
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("set the API server's feature gates: %w", err)
	}
	// The server's own loopback clients should not log warnings to themselves.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	completed, err := opts.Complete(ctx)
	if err != nil {
		return fmt.Errorf("complete the API server's options: %w", err)
	}
	if err := errors.Join(completed.Validate()...); err != nil {
		return fmt.Errorf("check the API server's options: %w", err)
	}
	return app.Run(ctx, completed)
}

func apiFlags(creds credentials, port int) []string {
	return []string{
		"--etcd-servers=" + etcdEndpoint,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + creds.server.cert,
		"--tls-private-key-file=" + creds.server.key,
		"--client-ca-file=" + creds.ca.cert,
		"--token-auth-file=" + creds.tokenFile,
		"--authorization-mode=RBAC",
		"--kubelet-client-certificate=" + creds.admin.cert,
		"--kubelet-client-key=" + creds.admin.key,
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + creds.serviceAccount.cert,
		"--service-account-signing-key-file=" + creds.serviceAccount.key,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		// No controller creates the service accounts that this plugin requires for
		// pods.
		"--disable-admission-plugins=ServiceAccount",
		"--shutdown-delay-duration=0s",
	}
}

func newAdminClient(creds credentials, port int) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: apiURL(port),
		QPS:  -1, // the default of 5 requests a second would slow the controllers down
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   creds.ca.cert,
			CertFile: creds.admin.cert,
			KeyFile:  creds.admin.key,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return client, nil
}

func apiURL(port int) string {
	return fmt.Sprintf("https://127.0.0.1:%d", port)
}

// waitReady returns when the API server reports that it is ready and the
// namespace "default" exists, which readiness does not include. It fails when
// the server ends.
func waitReady(ctx context.Context, client kubernetes.Interface, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-ended:
			return fmt.Errorf("the API server did not start: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w", err)
		}
	}
}

func ready(ctx context.Context, client kubernetes.Interface) error {
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return errors.New(`the namespace "default" does not exist yet`)
	}
	return err
}
