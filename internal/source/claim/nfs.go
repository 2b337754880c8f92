package claim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// root is the numeric identity that kubelet uses for mounts, so QEMU uses it, too.
const root = "0"

func (q request) inTreeNFS() (location, error) {
	s := q.pv.Spec.NFS
	return q.nfs(s.Server, s.Path, "")
}

// csiNFS translates a volume of csi-driver-nfs (pkg/nfs/nodeserver.go has its attributes, whose case does not matter).
func (q request) csiNFS() (location, error) {
	attributes := map[string]string{}
	given := q.pv.Spec.CSI.VolumeAttributes
	for _, name := range slices.Sorted(maps.Keys(given)) {
		attributes[strings.ToLower(name)] = given[name]
	}
	for _, name := range []string{"server", "share"} {
		if attributes[name] == "" {
			return location{}, q.noAttribute(name)
		}
	}
	// The driver replaces these variables when it mounts, with attributes that the provisioner has set.
	folder := strings.NewReplacer(
		"${pvc.metadata.name}", attributes["csi.storage.k8s.io/pvc/name"],
		"${pvc.metadata.namespace}", attributes["csi.storage.k8s.io/pvc/namespace"],
		"${pv.metadata.name}", attributes["csi.storage.k8s.io/pv/name"],
	).Replace(attributes["subdir"])
	return q.nfs(attributes["server"], attributes["share"], folder)
}

func (q request) nfs(server, share, folder string) (location, error) {
	if err := q.folder(); err != nil {
		return location{}, err
	}
	host, err := source.ParseHost(server)
	if err != nil {
		return location{}, q.ofVolume("server", err)
	}
	share, err = source.Path(share)
	if err != nil {
		return location{}, q.ofVolume("the exported path", err)
	}
	folder, err = source.Path("/" + folder)
	if err != nil {
		return location{}, q.ofVolume("subDir", err)
	}
	found := location{volume: source.NFSVolume(host, join(share, folder), root, root, nil), diskImage: true}
	if slices.ContainsFunc(q.pv.Spec.MountOptions, wantsNFS4) {
		found.hints = []string{fmt.Sprintf("The PersistentVolume %s is to be mounted with NFS version 4, but QEMU opens it with version "+
			"3. If the server has no version 3, mount the volume on every host and say where with mount_path.", q.pv.Name)}
	}
	return found, nil
}

func wantsNFS4(option string) bool {
	return strings.HasPrefix(option, "vers=4") || strings.HasPrefix(option, "nfsvers=4")
}

// join returns the path of the disk.img in a folder.
func join(folders ...string) string { return path.Join(append(folders, diskImage)...) }
