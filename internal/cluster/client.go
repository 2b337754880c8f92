package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

// answerTime bounds one request to the API server.
const answerTime = 30 * time.Second

// Client is a client of one API server. Its errors name the object and the server, and wrap the server's answer, so that
// apierrors.IsNotFound and the like recognize it.
type Client struct {
	// Unverified is whether the server's identity is not verified: a man in the middle could read all requests, with their credentials.
	Unverified bool

	// anonymous is whether it has no credentials.
	anonymous  bool
	server     string
	objects    kubernetes.Interface
	metadata   metadata.Interface
	answerTime time.Duration
}

// NewForClients creates a client from existing ones; server is the URL for errors.
func NewForClients(server string, objects kubernetes.Interface, meta metadata.Interface) *Client {
	return &Client{server: server, objects: objects, metadata: meta, answerTime: answerTime}
}

// Claim reads a PersistentVolumeClaim.
func (c *Client) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return get(ctx, c, "PersistentVolumeClaim "+namespace+"/"+name, name, c.objects.CoreV1().PersistentVolumeClaims(namespace))
}

// PatchClaim applies a JSON merge patch to a PersistentVolumeClaim. A patch with metadata.resourceVersion is refused with a conflict if the
// claim has another version. Finalizers need no subresource.
func (c *Client) PatchClaim(ctx context.Context, namespace, name string, patch []byte) error {
	ctx, cancel := c.withAnswerTime(ctx)
	defer cancel()
	// The manager's name is kept in managedFields: it must not depend on the user agent.
	as := metav1.PatchOptions{FieldManager: userAgent}
	_, err := c.objects.CoreV1().PersistentVolumeClaims(namespace).Patch(ctx, name, types.MergePatchType, patch, as)
	if err != nil {
		return fmt.Errorf("writing PersistentVolumeClaim %s/%s at the API server %s: %w", namespace, name, c.server, c.explain(err))
	}
	return nil
}

// Volume reads a PersistentVolume.
func (c *Client) Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return get(ctx, c, "PersistentVolume "+name, name, c.objects.CoreV1().PersistentVolumes())
}

// StorageClass reads a StorageClass.
func (c *Client) StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	return get(ctx, c, "StorageClass "+name, name, c.objects.StorageV1().StorageClasses())
}

// Node reads a Node.
func (c *Client) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return get(ctx, c, "Node "+name, name, c.objects.CoreV1().Nodes())
}

// CSINode reads which CSI drivers run on a node.
func (c *Client) CSINode(ctx context.Context, name string) (*storagev1.CSINode, error) {
	return get(ctx, c, "CSINode "+name, name, c.objects.StorageV1().CSINodes())
}

// CSIDriver reads a CSIDriver.
func (c *Client) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return get(ctx, c, "CSIDriver "+name, name, c.objects.StorageV1().CSIDrivers())
}

// ConfigMap reads a ConfigMap.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return get(ctx, c, "ConfigMap "+namespace+"/"+name, name, c.objects.CoreV1().ConfigMaps(namespace))
}

// Endpoints reads an Endpoints object, with which GlusterFS volumes reference their servers.
//
//nolint:staticcheck // its successor, EndpointSlice, is not what such volumes refer to
func (c *Client) Endpoints(ctx context.Context, namespace, name string) (*corev1.Endpoints, error) {
	return get(ctx, c, "Endpoints "+namespace+"/"+name, name, c.objects.CoreV1().Endpoints(namespace))
}

// Secret reads a Secret with its data.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get(ctx, c, "Secret "+namespace+"/"+name, name, c.objects.CoreV1().Secrets(namespace))
}

// SecretVersion reads a Secret's resourceVersion without its data.
func (c *Client) SecretVersion(ctx context.Context, namespace, name string) (string, error) {
	secrets := metadataGetter{c.metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)}
	s, err := get(ctx, c, "Secret "+namespace+"/"+name, name, secrets)
	if err != nil {
		return "", err
	}
	return s.ResourceVersion, nil
}

type getter[T any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
}

// metadataGetter adapts the metadata client's Get, which also takes subresources.
type metadataGetter struct{ metadata.ResourceInterface }

func (g metadataGetter) Get(ctx context.Context, name string, opts metav1.GetOptions) (*metav1.PartialObjectMetadata, error) {
	return g.ResourceInterface.Get(ctx, name, opts)
}

func get[T any](ctx context.Context, c *Client, what, name string, from getter[T]) (T, error) {
	ctx, cancel := c.withAnswerTime(ctx)
	defer cancel()
	object, err := from.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		var none T
		return none, c.reading(what, err)
	}
	return object, nil
}

func (c *Client) reading(what string, err error) error {
	return fmt.Errorf("reading %s from the API server %s: %w", what, c.server, c.explain(err))
}

// explain says what is missing if the API server refuses a client without credentials.
func (c *Client) explain(err error) error {
	if c.anonymous && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		return fmt.Errorf("%w. No credentials were sent: set token, client_certificate and client_key, exec, or a config_path whose user "+
			"has some in the provider's kubernetes block; over http none are sent", err)
	}
	return err
}

// withAnswerTime bounds one request. rest.Config.Timeout would also bound watches.
func (c *Client) withAnswerTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.answerTime, fmt.Errorf("no answer within %s", c.answerTime))
}
