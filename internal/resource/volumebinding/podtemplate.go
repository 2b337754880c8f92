package volumebinding

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/dynamic"
)

// podTemplate reads what the pod has beside the attributes, with what is refused in it.
func podTemplate(text string) (t corev1.PodTemplateSpec, err error) {
	if err := yaml.UnmarshalStrict([]byte(text), &t); err != nil {
		return t, source.Errorf("container", "pod_template is no PodTemplateSpec in YAML, such as \"spec: {priorityClassName: high}\": "+
			"%.120q", err)
	}
	refuse := func(at, why string) {
		if err == nil {
			err = source.Errorf("container", "pod_template: %.80q %s", at, why)
		}
	}
	if !reflect.DeepEqual(t.ObjectMeta, metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}) {
		refuse("metadata", "may have labels and annotations only: the provider sets the others")
	}
	for field, keys := range map[string]map[string]string{"labels": t.Labels, "annotations": t.Annotations} {
		for key := range keys {
			if strings.HasPrefix(key, "virtclaim.io/") {
				refuse("metadata."+field+"."+key, "is the provider's own: use another name")
			}
		}
	}
	if p := t.Spec.RestartPolicy; p != "" && p != corev1.RestartPolicyAlways {
		refuse("spec.restartPolicy", "must be Always, or be left out: the pod is to stay as long as its volume")
	}
	for n, v := range t.Spec.Volumes {
		if v.Name == dynamic.SecretVolume || strings.HasPrefix(v.Name, addedVolume) {
			refuse(fmt.Sprintf("spec.volumes[%d].name", n), "is the provider's own: use another name than virtclaim and volume-…")
		}
	}
	for n, c := range t.Spec.Containers {
		if c.Name != dynamic.Container || n > 0 {
			refuse(fmt.Sprintf("spec.containers[%d]", n), "is refused: there may be one, with the name volume. Put others into "+
				"initContainers (with restartPolicy: Always they go on)")
		}
		for m, mount := range c.VolumeMounts {
			if at := path.Clean(mount.MountPath); at == podwire.SecretPath || strings.HasPrefix(at, podwire.SecretPath+"/") {
				refuse(fmt.Sprintf("spec.containers[%d].volumeMounts[%d]", n, m),
					"is where the provider mounts its Secret: use another folder")
			}
		}
	}
	if slices.ContainsFunc(t.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == dynamic.Container }) {
		refuse("spec.initContainers", "has one with the name volume, which is that of the container: use another")
	}
	return t, err
}

// over is the spec with what the template has and the spec has not. Containers, environment variables, volumes and mounts are
// merged by their names and paths, as Kubernetes merges them; other lists are taken as a whole.
func over(template, spec corev1.PodSpec) (merged corev1.PodSpec, err error) {
	below, err := json.Marshal(template)
	if err != nil {
		return merged, err
	}
	above, err := json.Marshal(spec)
	if err != nil {
		return merged, err
	}
	if below, err = strategicpatch.StrategicMergePatch(below, above, corev1.PodSpec{}); err != nil {
		return merged, source.Errorf("container", "pod_template can't be merged: %.200q", err)
	}
	return merged, json.Unmarshal(below, &merged)
}
