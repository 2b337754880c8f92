package lab

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object is an object that can be deleted.
type object struct {
	resource, namespace, name string
	delete                    func(context.Context, string, metav1.DeleteOptions) error
}

// String is the object in kubectl's notation.
func (o object) String() string {
	return o.resource + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/")
}

// remove deletes objects and waits until they are gone. All are deleted before the wait, because one may wait for another. Objects that are
// already gone are no error.
func (l *Lab) remove(ctx context.Context, objects ...object) error {
	for _, o := range objects {
		if err := o.delete(ctx, o.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove %s: %w", o, err)
		}
	}
	for _, o := range objects {
		if err := l.awaitGone(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// AddNamespace creates a namespace if it is missing. It is not removed, because no controller would remove its content.
func (l *Lab) AddNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := l.Cluster.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return nil
}

// AddSecret creates a secret, and its namespace if that is missing.
func (l *Lab) AddSecret(ctx context.Context, secret *corev1.Secret) error {
	if err := l.AddNamespace(ctx, secret.Namespace); err != nil {
		return err
	}
	if _, err := l.Cluster.Client.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// AddCHAPSecret creates a secret with the credentials of the iSCSI server, in the format of Kubernetes' own iSCSI volumes.
func (l *Lab) AddCHAPSecret(ctx context.Context, namespace, name string) error {
	return l.AddSecret(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       "kubernetes.io/iscsi-chap",
		StringData: map[string]string{
			"node.session.auth.username": l.Target.Username,
			"node.session.auth.password": l.Target.Password,
		},
	})
}

// RemoveSecret removes a secret. One that is already gone is no error.
func (l *Lab) RemoveSecret(ctx context.Context, namespace, name string) error {
	return l.remove(ctx, object{"secrets", namespace, name, l.Cluster.Client.CoreV1().Secrets(namespace).Delete})
}

// AddConfigMap creates a ConfigMap, and its namespace if that is missing.
func (l *Lab) AddConfigMap(ctx context.Context, config *corev1.ConfigMap) error {
	if err := l.AddNamespace(ctx, config.Namespace); err != nil {
		return err
	}
	if _, err := l.Cluster.Client.CoreV1().ConfigMaps(config.Namespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make ConfigMap %s/%s: %w", config.Namespace, config.Name, err)
	}
	return nil
}

// RemoveConfigMap removes a ConfigMap. One that is already gone is no error.
func (l *Lab) RemoveConfigMap(ctx context.Context, namespace, name string) error {
	return l.remove(ctx, object{"configmaps", namespace, name, l.Cluster.Client.CoreV1().ConfigMaps(namespace).Delete})
}
