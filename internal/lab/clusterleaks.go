package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownMarks are the prefixes of finalizers and annotations of Kubernetes' own controllers.
var ownMarks = []string{
	"kubernetes.io/pv-protection", "kubernetes.io/pvc-protection",
	"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/",
}

// inventory lists the objects in the cluster. The Node, its leases and events belong to the lab.
func (c *Cluster) inventory(ctx context.Context) (lines []string, err error) {
	core := c.Client.CoreV1()
	claims, err := core.PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	for i := range claims.Items {
		lines = append(lines, marks("claim", &claims.Items[i])...)
	}
	volumes, err := core.PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list PersistentVolumes: %w", err)
	}
	for i := range volumes.Items {
		lines = append(lines, marks("PersistentVolume", &volumes.Items[i])...)
	}
	secrets, err := core.Secrets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	for i := range secrets.Items {
		lines = append(lines, marks("secret", &secrets.Items[i])...)
	}
	pods, err := core.Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		lines = append(lines, marks("pod", &pods.Items[i])...)
	}
	return lines, nil
}

// marks is an object's line, and one for each of its finalizers and annotations that are not Kubernetes' own.
func marks(kind string, o metav1.Object) []string {
	name := "cluster: " + kind + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	lines := []string{name}
	for _, finalizer := range o.GetFinalizers() {
		if !isOwnMark(finalizer) {
			lines = append(lines, name+": finalizer "+finalizer)
		}
	}
	for key, value := range o.GetAnnotations() {
		if !isOwnMark(key) {
			lines = append(lines, fmt.Sprintf("%s: annotation %s=%s", name, key, value))
		}
	}
	return lines
}

func isOwnMark(name string) bool {
	return slices.ContainsFunc(ownMarks, func(own string) bool { return strings.HasPrefix(name, own) })
}
