package claim

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// root is the numeric identity that kubelet uses for mounts, so QEMU uses it, too, unless it is told another one: servers map
// root to the anonymous user by default (root_squash).
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

// democraticNFS translates a volume of democratic-csi.
func (q request) democraticNFS() (location, error) {
	server, err := q.attribute("server")
	if err != nil {
		return location{}, err
	}
	share, err := q.attribute("share")
	if err != nil {
		return location{}, err
	}
	return q.nfs(server, share, "")
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
	user, group := cmp.Or(q.options.User, root), cmp.Or(q.options.Group, q.options.User, root)
	found := location{volume: source.NFSVolume(host, join(share, folder), user, group, nil), diskImage: true}
	if slices.ContainsFunc(q.pv.Spec.MountOptions, wantsNFS4) {
		found.hints = []string{fmt.Sprintf("The PersistentVolume %s is to be mounted with NFS version 4, but QEMU opens it with version "+
			"3. If the server has no version 3, mount the volume on every host and say where with mount_path.", q.pv.Name)}
	}
	return found, nil
}

func isNFS(pv *corev1.PersistentVolume) bool {
	s := pv.Spec
	return s.NFS != nil || s.CSI != nil && (s.CSI.Driver == nfsDriver || attaches(s.CSI, "nfs"))
}

func wantsNFS4(option string) bool {
	return strings.HasPrefix(option, "vers=4") || strings.HasPrefix(option, "nfsvers=4")
}

// join returns the path of the disk.img in a folder.
func join(folders ...string) string { return path.Join(append(folders, diskImage)...) }
