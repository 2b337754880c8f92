package volumebinding

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/dynamic"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// resourceWith is a binding data whose source has some attributes.
func resourceWith(t *testing.T, source string, attributes map[string]attr.Value) tfsdk.State {
	t.Helper()
	var resp resource.SchemaResponse
	New().Schema(t.Context(), resource.SchemaRequest{}, &resp)
	s := tfsdk.State{Schema: resp.Schema, Raw: tftypes.NewValue(resp.Schema.Type().TerraformType(t.Context()), nil)}
	set := func(at path.Path, value any) {
		if d := s.SetAttribute(t.Context(), at, value); d.HasError() {
			t.Fatal(d)
		}
	}
	set(path.Root("id"), "9d3f0c1b-6b0e-5d0c-8f5e-2f6d3c1b7a90")
	set(path.Root("name"), "data")
	set(path.Root("hosts"), []string{})
	set(path.Root("access_mode"), "write-exclusive")
	set(path.Root("volume"), tfvalue.VolumeObject(volume.Volume{Images: []volume.Image{{Type: "block", Name: "/dev/a", Format: "raw"}}}, tfvalue.Unknowns{}))
	for name, value := range attributes {
		set(sourcePath.AtName(source).AtName(name), value)
	}
	return s
}

// modified is what ModifyPlan says of a change; after is nil for a destroy.
func modified(t *testing.T, api runtime.Object, before tfsdk.State, after *tfsdk.State) diag.Diagnostics {
	t.Helper()
	b := providerdata.New("team", host.NewRegistry(nil), cluster.NewForClients("https://api", fake.NewClientset(api), nil))
	b.ReservesClaims = true
	plan := tfsdk.Plan{Schema: before.Schema, Raw: tftypes.NewValue(before.Raw.Type(), nil)}
	if after != nil {
		plan.Raw = after.Raw
	}
	resp := resource.ModifyPlanResponse{Plan: plan}
	(&binding{Resource: providerdata.Resource{Provider: b}}).ModifyPlan(t.Context(), resource.ModifyPlanRequest{State: before, Plan: plan}, &resp)
	return resp.Diagnostics
}

func fromClaim(t *testing.T, name string) tfsdk.State {
	t.Helper()
	return resourceWith(t, claimSource, map[string]attr.Value{"namespace": types.StringValue("vms"), "claim_name": types.StringValue(name)})
}

// A claim that is gone, or another owner's, is an error of the plan: the former binding is not destroyed for it.
func TestVolumeBinding_ReplacementRefusedInPlan(t *testing.T) {
	const key = "virtclaim.io/binding.11111111-1111-5111-8111-111111111111"
	held := func(owner, mode string) map[string]string {
		return map[string]string{key: `{"owner":"` + owner + `","name":"other","nonces":["n"],"mode":"` + mode + `","claimUID":"u"}`}
	}
	for name, tt := range map[string]struct {
		claim       string
		annotations map[string]string
		deleted     bool
		wrong       string
	}{
		"missing":              {claim: "other", wrong: "vms/next, which does not exist"},
		"held by another":      {claim: "next", annotations: held("others", "write-exclusive"), wrong: `it is held by binding "other" of owner "others"`},
		"read by another":      {claim: "next", annotations: held("others", "read-shared"), wrong: "can't be reserved write-exclusive"},
		"an unreadable record": {claim: "next", annotations: map[string]string{key: "{}"}, wrong: "an unknown holder"},
		"being deleted":        {claim: "next", deleted: true, wrong: "it is being deleted"},
		"held by this owner, which may release it in the same apply": {claim: "next", annotations: held("team", "write-exclusive")},
		"free": {claim: "next"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: tt.claim, UID: "u", Annotations: tt.annotations}}
			if tt.deleted {
				c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"a/b"}
			}
			after := fromClaim(t, "next")
			d := modified(t, c, fromClaim(t, "data"), &after)
			if d.HasError() != (tt.wrong != "") || tt.wrong != "" && !strings.Contains(d.Errors()[0].Detail(), tt.wrong) {
				t.Errorf("got %v", d)
			}
			if d := modified(t, c, fromClaim(t, "data"), nil); len(d) > 0 {
				t.Errorf("a destroy says %v", d)
			}
		})
	}
}

// A plan that deletes a dynamic volume says so; one that keeps it does not.
func TestVolumeBinding_LossIsWarnedOf(t *testing.T) {
	made := func(size, pool string) tfsdk.State {
		object := map[string]attr.Type{
			"url": types.StringType, "ca_certificate": types.StringType, "namespace": types.StringType,
			"secret_ref": types.ObjectType{AttrTypes: map[string]attr.Type{"namespace": types.StringType, "name": types.StringType}},
		}
		return resourceWith(t, dynamicSource, map[string]attr.Value{
			"parameters": types.MapValueMust(types.StringType, map[string]attr.Value{"size": types.StringValue(size), "pool": types.StringValue(pool)}),
			"server": types.ObjectValueMust(object, map[string]attr.Value{
				"url": types.StringValue("https://volumes.example.org/volume"), "ca_certificate": types.StringNull(), "namespace": types.StringNull(),
				"secret_ref": types.ObjectNull(object["secret_ref"].(types.ObjectType).AttrTypes),
			}),
		})
	}
	before, larger, smaller, other := made("64Mi", "a"), made("128Mi", "a"), made("65535Ki", "a"), made("32Mi", "b")
	claim := fromClaim(t, "next")
	next := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "next"}}
	for name, tt := range map[string]struct {
		before tfsdk.State
		after  *tfsdk.State
		warns  string
	}{
		"destroy":                  {before, nil, "Destroying the binding deletes its dynamic volume (/dev/a)"},
		"other parameters":         {before, &other, "Replacing the binding deletes its dynamic volume (/dev/a)"},
		"another source":           {before, &claim, "Replacing the binding deletes its dynamic volume (/dev/a)"},
		"a larger size":            {before, &larger, ""},
		"no change":                {before, &before, ""},
		"a claim keeps its volume": {claim, nil, ""},
	} {
		d := modified(t, next, tt.before, tt.after)
		found := ""
		for _, w := range d.Warnings() {
			if w.Summary() == "The content of volume binding data is lost" {
				found += w.Detail()
			}
		}
		if d.HasError() || (found == "") != (tt.warns == "") || !strings.HasPrefix(found, tt.warns) {
			t.Errorf("%s: %v", name, d)
		}
	}
	d := modified(t, next, before, &smaller)
	if len(d) != 1 || d.HasError() || !strings.Contains(d[0].Detail(), `"64Mi", and "65535Ki" is asked for`) {
		t.Errorf("a smaller size: %v", d)
	}
}

// The binding of a pod whose namespace is gone, or going, can be destroyed; any other error keeps it.
func TestVolumeBinding_DestroyedWithoutNamespace(t *testing.T) {
	missing := func(resource, name string) error {
		return apierrors.NewNotFound(corev1.Resource(resource), name)
	}
	going := apierrors.NewForbidden(corev1.Resource("secrets"), "a", errors.New("namespace vms is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tt := range map[string]struct {
		err  error
		done bool
	}{
		"gone":              {missing("namespaces", "vms"), true},
		"going":             {going, true},
		"another namespace": {missing("namespaces", "others"), false},
		"another object":    {missing("serviceaccounts", "vms"), false},
		"forbidden":         {apierrors.NewForbidden(corev1.Resource("secrets"), "a", errors.New("no")), false},
		"a text":            {errors.New(`namespaces "vms" not found`), false},
	} {
		objects := fake.NewClientset()
		objects.PrependReactor("create", "*", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, tt.err })
		k := dynamicVolume{
			binding: &binding{Resource: providerdata.Resource{Provider: providerdata.New("team", host.NewRegistry(nil), nil)}},
			pod: &dynamic.Pod{Cluster: cluster.NewForClients("https://api", objects, nil), Namespace: "vms", Binding: "id", Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 8443}}}}},
			}},
		}
		var diags diag.Diagnostics
		err := k.remove(t.Context(), model{Hosts: types.SetNull(types.StringType)}, privateState{}, &diags)
		if (err == nil) != tt.done || (diags.WarningsCount() == 1) != tt.done {
			t.Errorf("%s: %v, %v", name, err, diags)
		}
	}
}
