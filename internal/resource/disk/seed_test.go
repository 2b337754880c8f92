package disk

import (
	"context"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	kubetest "k8s.io/client-go/testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// restless is a cluster whose secret changes its version after each read of its content or its version.
func restless() *cluster.Client { return withUserData("#cloud-config ") }

// withUserData is restless with user data that begin with that.
func withUserData(begin string) *cluster.Client {
	version := 1
	meta := func() metav1.ObjectMeta {
		defer func() { version++ }()
		return metav1.ObjectMeta{Namespace: "disks", Name: "seed", ResourceVersion: strconv.Itoa(version)}
	}
	objects, metadata := fake.NewClientset(), metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
	objects.PrependReactor("get", "secrets", func(kubetest.Action) (bool, runtime.Object, error) {
		m := meta()
		return true, &corev1.Secret{ObjectMeta: m, Data: map[string][]byte{"userdata": []byte(begin + m.ResourceVersion)}}, nil
	})
	metadata.PrependReactor("get", "secrets", func(kubetest.Action) (bool, runtime.Object, error) {
		return true, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta(),
		}, nil
	})
	return cluster.NewForClients("https://api", objects, metadata)
}

type fixedVersion string

func (v fixedVersion) SecretVersion(context.Context, string, string) (string, error) {
	return string(v), nil
}

// With the older version, the next plan sees that the secret changed. With the newer one it would never see that.
func TestSeed_ContentMatchesDigest(t *testing.T) {
	ctx := context.Background()
	r := &disk{Resource: providerdata.Resource{Provider: providerdata.New("", nil, restless())}}
	c := cloudInitModel{UserDataSecretRef: &tfvalue.SecretRef{Namespace: types.StringValue("disks"), Name: types.StringValue("seed")}}
	var spec content.Spec
	got, err := r.prepareComposed(ctx, made(t, nil), sourceModel{CloudInit: &c}, &spec)
	if err != nil {
		t.Fatal(err)
	}
	want, err := digestOf(ctx, c, func() (secretVersions, error) { return fixedVersion("1"), nil })
	if err != nil || got != want {
		t.Errorf("the digest is not of the version that was there first: %s, %v", got, err)
	}
	from, err := spec.Content.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	iso, err := io.ReadAll(from)
	if err != nil || !strings.Contains(string(iso), "#cloud-config 2") {
		t.Errorf("the seed has another content: %v", err)
	}
}

// Only the apply reads a secret: what a guest would ignore is refused before the seed is made.
func TestSeed_Base64InSecret(t *testing.T) {
	r := &disk{Resource: providerdata.Resource{Provider: providerdata.New("", nil, withUserData("I2Nsb3VkLWNvbmZpZwo") /* and one digit */)}}
	c := cloudInitModel{UserDataSecretRef: &tfvalue.SecretRef{Namespace: types.StringValue("disks"), Name: types.StringValue("seed")}}
	var spec content.Spec
	if _, err := r.prepareComposed(t.Context(), made(t, nil), sourceModel{CloudInit: &c}, &spec); err == nil || !strings.Contains(err.Error(), "base64_encode = false") {
		t.Errorf("got %v", err)
	}
}

// Another version of either makes other variables.
func TestEnvironment_DigestHasBothVersions(t *testing.T) {
	digest := func(version int64, secret string) string {
		e := environmentModel{
			VariablesWOVersion: types.Int64Value(version), SecretRef: &tfvalue.SecretRef{Namespace: types.StringValue("disks"), Name: types.StringValue("env")},
		}
		got, err := digestOf(t.Context(), e, func() (secretVersions, error) { return fixedVersion(secret), nil })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if first := digest(1, "7"); first == digest(2, "7") || first == digest(1, "8") || first != digest(1, "7") {
		t.Error("another version is the same digest, or the same version another one")
	}
}
