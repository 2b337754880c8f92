package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/nfs"
)

// startControllers runs the binder and the protection controllers until ctx
// ends. It returns when their caches have all existing objects.
func startControllers(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	binder, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                client,
		SyncPeriod:                15 * time.Second,
		VolumePlugins:             volumePlugins(),
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             factory.Storage().V1().StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: true,
	})
	if err != nil {
		return fmt.Errorf("make the volume binder: %w", err)
	}
	log := klog.FromContext(ctx)
	claimProtection, err := pvcprotection.NewPVCProtectionController(log, core.PersistentVolumeClaims(), core.Pods(), client)
	if err != nil {
		return fmt.Errorf("make the claim protection controller: %w", err)
	}
	volumeProtection, err := pvprotection.NewPVProtectionController(log, core.PersistentVolumes(), client)
	if err != nil {
		return fmt.Errorf("make the volume protection controller: %w", err)
	}

	factory.StartWithContext(ctx)
	go binder.Run(ctx)
	go claimProtection.Run(ctx, 1)
	go volumeProtection.Run(ctx, 1)
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the controllers could not list the objects of type %v: %w", kind, ctx.Err())
		}
	}
	return nil
}

// volumePlugins are the plugins of kube-controller-manager that can delete or
// recycle a volume: all other in-tree types are only bound.
func volumePlugins() []volume.VolumePlugin {
	config := volume.VolumeConfig{RecyclerPodTemplate: volume.NewPersistentVolumeRecyclerPodTemplate()}
	return append(hostpath.ProbeVolumePlugins(config), nfs.ProbeVolumePlugins(config)...)
}
