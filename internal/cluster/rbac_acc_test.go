//go:build acc

package cluster_test

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// apply creates the objects of a manifest for the test.
func apply(t *testing.T, client kubernetes.Interface, manifest string) {
	t.Helper()
	for _, object := range decode(t, manifest) {
		var err error
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			accounts := client.CoreV1().ServiceAccounts(o.Namespace)
			_, err = accounts.Create(t.Context(), o, metav1.CreateOptions{})
			cleanUp(t, "service account", accounts.Delete, o.Name)
		case *rbacv1.ClusterRole:
			_, err = client.RbacV1().ClusterRoles().Create(t.Context(), o, metav1.CreateOptions{})
			cleanUp(t, "role", client.RbacV1().ClusterRoles().Delete, o.Name)
		case *rbacv1.ClusterRoleBinding:
			_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), o, metav1.CreateOptions{})
			cleanUp(t, "role binding", client.RbacV1().ClusterRoleBindings().Delete, o.Name)
		default:
			t.Fatalf("a %T is no part of a manifest for RBAC", o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// as returns a client with the rights of a manifest, once the API server has applied them.
func as(t *testing.T, l *lab.Lab, manifest, account string) *cluster.Client {
	t.Helper()
	namespace(t, l, "virtclaim")
	apply(t, l.Cluster.Client, manifest)
	accounts := l.Cluster.Client.CoreV1().ServiceAccounts("virtclaim")
	token, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := cluster.New(cluster.Config{
		Host: config.Host, ClusterCACertificate: string(config.CAData), Token: token.Status.Token,
	})
	if err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "the rights hold", func() error {
		if _, err := client.Node(t.Context(), "nowhere"); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	return client
}

// addObjects creates one object of each kind that a client reads.
func addObjects(t *testing.T, l *lab.Lab) {
	t.Helper()
	acctest.Claim(t, l, "rights", "golden", acctest.LUN(t, l, true, ""))
	core, storage := l.Cluster.Client.CoreV1(), l.Cluster.Client.StorageV1()
	named := metav1.ObjectMeta{Name: "rights"}
	_, err := core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: named}, metav1.CreateOptions{})
	made(t, err)
	cleanUp(t, "node", core.Nodes().Delete, "rights")
	clusters := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "rook-ceph-csi-config"}}
	_, err = core.ConfigMaps("rights").Create(t.Context(), clusters, metav1.CreateOptions{})
	made(t, err)
	cleanUp(t, "config map", core.ConfigMaps("rights").Delete, "rook-ceph-csi-config")
	//nolint:staticcheck // see Client.Endpoints
	_, err = core.Endpoints("rights").Create(t.Context(), &corev1.Endpoints{ObjectMeta: named}, metav1.CreateOptions{})
	made(t, err)
	cleanUp(t, "endpoints", core.Endpoints("rights").Delete, "rights")
	class := &storagev1.StorageClass{ObjectMeta: named, Provisioner: "example.com/none"}
	_, err = storage.StorageClasses().Create(t.Context(), class, metav1.CreateOptions{})
	made(t, err)
	cleanUp(t, "storage class", storage.StorageClasses().Delete, "rights")
	_, err = storage.CSINodes().Create(t.Context(), &storagev1.CSINode{ObjectMeta: named}, metav1.CreateOptions{})
	made(t, err)
	cleanUp(t, "CSI node", storage.CSINodes().Delete, "rights")
	_, err = storage.CSIDrivers().Create(t.Context(), &storagev1.CSIDriver{ObjectMeta: named}, metav1.CreateOptions{})
	made(t, err)
	cleanUp(t, "CSI driver", storage.CSIDrivers().Delete, "rights")
	claim, err := core.PersistentVolumeClaims("rights").Get(t.Context(), "golden", metav1.GetOptions{})
	made(t, err)
	_, err = core.Events("rights").Create(t.Context(), &corev1.Event{
		ObjectMeta: named, Message: "it was seen",
		InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "rights", Name: "golden", UID: claim.UID},
	}, metav1.CreateOptions{})
	made(t, err)
	cleanUp(t, "event", core.Events("rights").Delete, "rights")
}

func made(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reads are all requests of a client except writes.
var reads = map[string]func(context.Context, *cluster.Client) error{
	"claim": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.Claim(ctx, "rights", "golden")
		return err
	},
	"volume": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.Volume(ctx, "rights-golden")
		return err
	},
	"storage class": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.StorageClass(ctx, "rights")
		return err
	},
	"node":     func(ctx context.Context, c *cluster.Client) error { _, err := c.Node(ctx, "rights"); return err },
	"CSI node": func(ctx context.Context, c *cluster.Client) error { _, err := c.CSINode(ctx, "rights"); return err },
	"CSI driver": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.CSIDriver(ctx, "rights")
		return err
	},
	"config map": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.ConfigMap(ctx, "rights", "rook-ceph-csi-config")
		return err
	},
	"endpoints": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.Endpoints(ctx, "rights", "rights")
		return err
	},
	"secret": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.Secret(ctx, "rights", "golden-chap")
		return err
	},
	"secret's version": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.SecretVersion(ctx, "rights", "golden-chap")
		return err
	},
	"pods": func(ctx context.Context, c *cluster.Client) error {
		_, err := c.PodsUsing(ctx, "rights", "golden")
		return err
	},
	"watch": func(ctx context.Context, c *cluster.Client) error {
		return c.WatchClaim(ctx, "rights", "golden", func(*corev1.PersistentVolumeClaim) bool { return true })
	},
	// After a few names that do not exist, these are read from lists if the credentials may list them.
	"cached claim": func(ctx context.Context, c *cluster.Client) error {
		return afterMany(c.Cached(), func(r *cluster.Cached, name string) error { _, err := r.Claim(ctx, "rights", name); return err }, "golden")
	},
	"cached volume": func(ctx context.Context, c *cluster.Client) error {
		return afterMany(c.Cached(), func(r *cluster.Cached, name string) error { _, err := r.Volume(ctx, name); return err }, "rights-golden")
	},
	"cached secret's version": func(ctx context.Context, c *cluster.Client) error {
		return afterMany(c.Cached(), func(r *cluster.Cached, name string) error { _, err := r.SecretVersion(ctx, "rights", name); return err }, "golden-chap")
	},
}

func afterMany(r *cluster.Cached, read func(*cluster.Cached, string) error, name string) error {
	for range 10 {
		if err := read(r, "nowhere"); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return read(r, name)
}

func TestAccRBAC_ManifestsSuffice(t *testing.T) {
	l := acctest.Lab(t)
	addObjects(t, l)
	clients := map[string]*cluster.Client{
		"reader": as(t, l, reader, "virtclaim-reader"), "reserver": as(t, l, reserver, "virtclaim-reserver"),
	}
	for who, client := range clients {
		for what, read := range reads {
			if err := read(t.Context(), client); err != nil {
				t.Errorf("%s: %s: %v", who, what, err)
			}
		}
		claim, err := client.Claim(t.Context(), "rights", "golden")
		if err != nil {
			t.Fatal(err)
		}
		if event := client.LastEvent(t.Context(), claim); event != "it was seen" {
			t.Errorf("%s: the last event is %q", who, event)
		}
	}
	patch := []byte(`{"metadata":{"annotations":{"virtclaim.io/binding.a":null}}}`)
	if err := clients["reader"].PatchClaim(t.Context(), "rights", "golden", patch); !apierrors.IsForbidden(err) {
		t.Errorf("the reader patches: %v", err)
	}
	if err := clients["reserver"].PatchClaim(t.Context(), "rights", "golden", patch); err != nil {
		t.Errorf("the reserver does not patch: %v", err)
	}
}

// Rights that are not needed are not granted: above all, secrets can't be listed.
func TestAccRBAC_ManifestsGrantNoMore(t *testing.T) {
	l := acctest.Lab(t)
	namespace(t, l, "virtclaim")
	config, err := clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, l.Cluster.Client, reserver)
	config.Impersonate.UserName = "system:serviceaccount:virtclaim:virtclaim-reserver"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, core := t.Context(), client.CoreV1()
	acctest.Eventually(t, "the rights hold", func() error {
		_, err := core.Pods("virtclaim").List(ctx, metav1.ListOptions{})
		return err
	})
	for what, try := range map[string]func() error{
		"read another configuration": func() error {
			_, err := core.ConfigMaps("virtclaim").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
			return err
		},
		"list secrets":   func() error { _, err := core.Secrets("virtclaim").List(ctx, metav1.ListOptions{}); return err },
		"read a pod":     func() error { _, err := core.Pods("virtclaim").Get(ctx, "x", metav1.GetOptions{}); return err },
		"delete a claim": func() error { return core.PersistentVolumeClaims("virtclaim").Delete(ctx, "x", metav1.DeleteOptions{}) },
		"patch a volume": func() error {
			_, err := core.PersistentVolumes().Patch(ctx, "x", "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{})
			return err
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
