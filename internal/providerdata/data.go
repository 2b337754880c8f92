// Package providerdata has the shared data of a configured provider for its resources: its owner, hosts and cluster.
package providerdata

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ErrNoCluster is the error of a claim without a configured cluster.
var ErrNoCluster = errors.New("the provider has no kubernetes block, so no PersistentVolumeClaim can be resolved; " +
	"add one, for example: kubernetes = { config_path = \"~/.kube/config\" }")

// Data is one configuration of the provider. Connections to hosts and the cluster are opened lazily.
type Data struct {
	// Known is false while any part of the provider's configuration is unknown: then no connection may be opened, reads return the prior
	// state, and plans leave values unknown.
	Known bool
	// Owner identifies the configuration on hosts and in the cluster; empty if the user set none.
	Owner string
	// ReservesClaims is whether bindings write a reservation on their claims.
	ReservesClaims bool
	// VolumeImage is the reference of the image of pods that fill claims; empty if none is configured and
	// this is no release.
	VolumeImage string
	// Hosts are the libvirt hosts.
	Hosts *host.Registry
	// Content creates local images.
	Content *content.Creator
	// Tags caches the digests of container image tags.
	Tags image.Tags
	// Files caches what hosts tell of their files.
	Files content.FileCache
	// SettleMachine completes or reverts the interrupted move of the machine of that UUID on the host of that key.
	SettleMachine func(ctx context.Context, key, uuid string) error
	// RemovedDisks are the disks of the machines that this process has removed, by the machine's name and by its host and name.
	RemovedDisks sync.Map

	kubernetes  *cluster.Client
	lists       *cluster.Cached
	applies     atomic.Bool
	refreshes   atomic.Bool
	names       sync.Map
	bound       sync.Map
	locked      sync.Map
	plannedUses plannedUses
	asked       sync.Map
	destroying  atomic.Int32
}

// New returns the data of a configuration that is completely known. client is nil if no cluster is configured.
func New(owner string, hosts *host.Registry, client *cluster.Client) *Data {
	d := &Data{Known: true, Owner: owner, Hosts: hosts, Content: &content.Creator{Owner: owner}, kubernetes: client}
	if client != nil {
		d.lists = client.Cached()
	}
	return d
}

// RecordedHost is the host of an object in the state, such as "disk host-a/ssd/root". If hosts does not have it any more, nil and an error
// that says how to go on.
func (d *Data) RecordedHost(key, object string, diags *diag.Diagnostics) *host.Host {
	h, err := d.Hosts.Host(key)
	if err != nil {
		diags.AddAttributeError(path.Root("host"), "Unknown host", fmt.Sprintf("The %s is on it, and %s.", object, err)+"\n\nPut it back "+
			"into hosts to read, change or destroy what it has. If it was renamed there, or is off for good, take what it has out of the "+
			"state:\n\n    terraform state rm <address of this resource>\n\nand import it under the new name, with an import block "+
			"(guide \"Day-two operations\").")
	}
	return h
}

// Apply records that this process has begun to apply a plan.
func (d *Data) Apply() { d.applies.Store(true) }

// IsApplying reports whether this process has begun to apply a plan. Terraform plans and applies in separate processes, so a plan that is
// made now is not shown to the user: it may fill in unknown values, but must not replace a resource.
func (d *Data) IsApplying() bool { return d != nil && d.applies.Load() }

// ReserveName reserves a name for one resource of this process; false if another resource has it.
func (d *Data) ReserveName(name string) bool {
	_, taken := d.names.LoadOrStore(name, true)
	return !taken
}

// ReleaseName ends the reservation of a name.
func (d *Data) ReleaseName(name string) { d.names.Delete(name) }

// RecordBinding records the storage of a binding that this process has created.
func (d *Data) RecordBinding(id string, storage volume.Image) { d.bound.Store(id, storage) }

// LookupBinding returns the storage of the binding with that id that this process has created; ok is false if there is none.
func (d *Data) LookupBinding(id string) (storage volume.Image, ok bool) {
	found, ok := d.bound.Load(id)
	if ok {
		storage = found.(volume.Image)
	}
	return storage, ok
}

// LockBinding waits until no other operation of this process has locked the binding with that id.
func (d *Data) LockBinding(id string) (unlock func()) {
	m, _ := d.locked.LoadOrStore(id, &sync.Mutex{})
	m.(*sync.Mutex).Lock()
	return m.(*sync.Mutex).Unlock
}

// Cluster returns the Kubernetes client, or ErrNoCluster.
func (d *Data) Cluster() (*cluster.Client, error) {
	if d.kubernetes == nil {
		return nil, ErrNoCluster
	}
	return d.kubernetes, nil
}

// Lists returns the Kubernetes client for refreshes, whose answers may be some seconds old, or ErrNoCluster.
func (d *Data) Lists() (*cluster.Cached, error) {
	if d.lists == nil {
		return nil, ErrNoCluster
	}
	return d.lists, nil
}

// Mover completes the moves of disks.
func (d *Data) Mover() content.Mover { return content.Mover{Creator: d.Content, Hosts: d.Hosts} }

// UsageTypes returns the usage types of a host: the configured ones, or those in the annotations of its Kubernetes node.
func (d *Data) UsageTypes(key string) content.UsageTypes {
	u := content.UsageTypes{Host: key, Pools: d.Hosts.Storage(key)}
	if client := d.kubernetes; client != nil {
		u.Annotations = func(ctx context.Context) (map[string]string, error) {
			node, err := client.Node(ctx, d.Hosts.Node(key))
			if err != nil {
				return nil, err
			}
			return node.Annotations, nil
		}
	}
	return u
}

// from returns the data that a resource is configured with. It is nil before the provider has been configured, as during validation.
func from(providerData any, diags *diag.Diagnostics) *Data {
	if providerData == nil {
		return nil
	}
	d, ok := providerData.(*Data)
	if !ok {
		diags.AddError("Unexpected provider data", fmt.Sprintf("Got %T. This is a bug in virtclaim; please report it.", providerData))
	}
	return d
}

// Ready reports whether hosts and cluster may be queried.
func (d *Data) Ready() bool { return d != nil && d.Known }
