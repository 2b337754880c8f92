package cluster_test

import (
	"bufio"
	_ "embed"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// The manifests in the documentation.
var (
	//go:embed rbac/reader.yaml
	reader string
	//go:embed rbac/reserver.yaml
	reserver string
)

// decode returns the objects of a manifest. An unknown field is an error.
func decode(t *testing.T, manifest string) (objects []runtime.Object) {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		objects = append(objects, object)
	}
}

// rules are the rules of all roles of a manifest.
func rules(t *testing.T, manifest string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, object := range decode(t, manifest) {
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

func TestRBAC_ReserverIsReaderWithPatch(t *testing.T) {
	patch := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"patch"}}
	var without []rbacv1.PolicyRule
	patches := 0
	for _, rule := range rules(t, reserver) {
		if cmp.Equal(rule, patch) {
			patches++
			continue
		}
		without = append(without, rule)
	}
	if diff := cmp.Diff(rules(t, reader), without); diff != "" || patches != 1 {
		t.Errorf("it has %d patches, and else: %s", patches, diff)
	}
}
