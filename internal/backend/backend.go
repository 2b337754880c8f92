// Package backend is what a configured provider hands to its resources: its owner, the hosts and the cluster.
package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ErrNoCluster is the error of asking for a cluster that the provider has no configuration of.
var ErrNoCluster = errors.New("the provider has no kubernetes block, so no PersistentVolumeClaim can be resolved; " +
	"add one, for example: kubernetes = { config_path = \"~/.kube/config\" }")

// Backend is one configuration of the provider. It dials nothing until something is asked of a host or the cluster.
type Backend struct {
	// Known is false while any part of the provider's configuration is: then nothing may be dialled, reads give the
	// prior state and plans leave open what they can't know.
	Known bool
	// Owner names the configuration on hosts and in the cluster; empty when the user set none.
	Owner string
	// ReservesClaims tells whether bindings write a reservation on their claims.
	ReservesClaims bool
	// Hosts are the libvirt hosts.
	Hosts *host.Registry
	// Content makes local images.
	Content *content.Creator
	// Tags remembers what tags of container images stand for.
	Tags image.Tags

	kubernetes *cluster.Client
	lists      *cluster.Cached
	applies    atomic.Bool
	refreshes  atomic.Bool
	names      sync.Map
	bound      sync.Map
	wishes     wishes
}

// New is the backend of a configuration that is wholly known. client is nil when no cluster is configured.
func New(owner string, hosts *host.Registry, client *cluster.Client) *Backend {
	b := &Backend{Known: true, Owner: owner, Hosts: hosts, Content: &content.Creator{Owner: owner}, kubernetes: client}
	if client != nil {
		b.lists = client.Cached()
	}
	return b
}

// Apply notes that this process has begun to apply a plan.
func (b *Backend) Apply() { b.applies.Store(true) }

// IsApplying tells whether this process has begun to apply a plan. Terraform plans and applies in processes of their own, so
// what is planned now is not shown to anybody any more: it may fill in what was unknown, but replace nothing.
func (b *Backend) IsApplying() bool { return b != nil && b.applies.Load() }

// ReserveName reserves a name for one resource of this process; false when another one has it.
func (b *Backend) ReserveName(name string) bool {
	_, taken := b.names.LoadOrStore(name, true)
	return !taken
}

// ReleaseName ends the reservation of a name.
func (b *Backend) ReleaseName(name string) { b.names.Delete(name) }

// RecordBinding notes what a binding that this process has made holds.
func (b *Backend) RecordBinding(id string, storage volume.Image) { b.bound.Store(id, storage) }

// LookupBinding is what a binding of that id holds that this process has made; ok is false when it has made none.
func (b *Backend) LookupBinding(id string) (storage volume.Image, ok bool) {
	found, ok := b.bound.Load(id)
	if ok {
		storage = found.(volume.Image)
	}
	return storage, ok
}

// Cluster is the Kubernetes client, or ErrNoCluster.
func (b *Backend) Cluster() (*cluster.Client, error) {
	if b.kubernetes == nil {
		return nil, ErrNoCluster
	}
	return b.kubernetes, nil
}

// Lists is the Kubernetes client for refreshes, whose answers may be some seconds old, or ErrNoCluster.
func (b *Backend) Lists() (*cluster.Cached, error) {
	if b.lists == nil {
		return nil, ErrNoCluster
	}
	return b.lists, nil
}

// UsageTypes are those of a host: the configured ones, or those that the annotations of its Kubernetes node name.
func (b *Backend) UsageTypes(key string) content.UsageTypes {
	u := content.UsageTypes{Host: key, Pools: b.Hosts.Storage(key)}
	if client := b.kubernetes; client != nil {
		u.Annotations = func(ctx context.Context) (map[string]string, error) {
			node, err := client.Node(ctx, b.Hosts.Node(key))
			if err != nil {
				return nil, err
			}
			return node.Annotations, nil
		}
	}
	return u
}

// From reads the backend out of what the framework hands to a resource's Configure. It is nil before the provider
// itself has been configured, as during validation.
func From(providerData any, diags *diag.Diagnostics) *Backend {
	if providerData == nil {
		return nil
	}
	b, ok := providerData.(*Backend)
	if !ok {
		diags.AddError("Unexpected provider data", fmt.Sprintf("Got %T. This is a bug in virtclaim; please report it.", providerData))
	}
	return b
}

// Ready tells whether hosts and cluster may be asked.
func (b *Backend) Ready() bool { return b != nil && b.Known }
