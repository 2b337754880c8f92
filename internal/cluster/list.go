package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// Claims are the PersistentVolumeClaims of a namespace by name.
func (c *Client) Claims(ctx context.Context, namespace string) (map[string]*corev1.PersistentVolumeClaim, error) {
	all := map[string]*corev1.PersistentVolumeClaim{}
	from := c.objects.CoreV1().PersistentVolumeClaims(namespace)
	err := listAll(ctx, c, "PersistentVolumeClaims in the namespace "+namespace, from, func(claim *corev1.PersistentVolumeClaim) {
		all[claim.Name] = claim
	})
	return all, err
}

func (c *Client) allVolumes(ctx context.Context, _ string) (map[string]*corev1.PersistentVolume, error) {
	all := map[string]*corev1.PersistentVolume{}
	err := listAll(ctx, c, "PersistentVolumes", c.objects.CoreV1().PersistentVolumes(), func(pv *corev1.PersistentVolume) {
		all[pv.Name] = pv
	})
	return all, err
}

func (c *Client) allSecretVersions(ctx context.Context, namespace string) (map[string]string, error) {
	all := map[string]string{}
	from := c.metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	err := listAll(ctx, c, "Secrets in the namespace "+namespace, from, func(s *metav1.PartialObjectMetadata) {
		all[s.Name] = s.ResourceVersion
	})
	return all, err
}

// lister is a client of one kind, in one namespace if the kind is namespaced.
type lister[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
}

// listAll lists all objects of a kind in pages of 500, so that no answer is huge. The timeout of a request applies to each page.
func listAll[L, T runtime.Object](ctx context.Context, c *Client, what string, from lister[L], visit func(T)) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		ctx, cancel := c.withAnswerTime(ctx)
		defer cancel()
		return from.List(ctx, o)
	})
	all, _, err := pages.List(ctx, metav1.ListOptions{})
	if err == nil {
		err = meta.EachListItem(all, func(item runtime.Object) error {
			object, ok := item.(T)
			if !ok {
				return fmt.Errorf("a %T is among them", item)
			}
			visit(object)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("listing %s at the API server %s: %w", what, c.server, c.explain(err))
	}
	return nil
}
