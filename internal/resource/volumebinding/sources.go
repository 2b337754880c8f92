package volumebinding

import (
	"maps"
	"math"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// sourceAttributes are the sources of a volume, exactly one of which must be set.
func sourceAttributes() map[string]schema.Attribute {
	all := map[string]schema.SingleNestedAttribute{
		claimSource: claimAttribute(), dynamicSource: dynamicAttribute(), "iscsi": iscsiAttribute(), "rbd": rbdAttribute(),
		"nbd": object("An export of an NBD server.", map[string]schema.Attribute{
			"server": tfvalue.Optional("Address of the server, `host` or `host:port`; the port defaults to 10809."),
			"socket": tfvalue.Optional("Path of the server's unix socket on the hosts, instead of `server`."),
			"export": tfvalue.Optional("Name of the export; the server's default one if absent."),
			"tls": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Encrypt the connection and verify the server, with the certificates in " +
					"`nbd_tls_x509_cert_dir` of each host's `qemu.conf`.",
			},
		}),
		"gluster": object("A raw image on a GlusterFS volume.", map[string]schema.Attribute{
			"servers": texted("Servers that have the volume, as `host` or `host:port`."),
			"volume":  tfvalue.Required("Name of the volume."),
			"path":    tfvalue.Required("Path of the image in the volume."),
			"format":  rawAttribute(),
		}),
		"nfs": object("A raw image on an NFS server, which QEMU opens itself (NFS version 3).", map[string]schema.Attribute{
			"server": tfvalue.Required("Address of the server."),
			"path":   tfvalue.Required("Path of the image on the server, including that of the export."),
			"uid":    identity("User id to open it as; 0 if absent."),
			"gid":    identity("Group id to open it as; 0 if absent."),
			"format": rawAttribute(),
		}),
		"http": object("A raw image on a web server that supports range requests. It can only be bound as `read-shared`.",
			map[string]schema.Attribute{
				"url": tfvalue.Required("URL of the image, `http://` or `https://`. All of it, with its query, is stored in plan, state " +
					"and the definitions of machines: anyone who can read these sees it. QEMU asks with `HEAD` first and then for " +
					"ranges: a presigned URL (S3, GCS) is signed for `GET` alone, and refused. Use `virtclaim_disk` with `source.url` " +
					"for it, which downloads with `GET`."),
				"format": rawAttribute(),
				"insecure": schema.BoolAttribute{
					Optional: true, MarkdownDescription: "Don't verify the certificate of an https server. Otherwise the host must " +
						"trust the certificate: add a private certificate authority to the host's trusted ones.",
				},
			}),
		"file": object("An image in a regular file of the hosts. A symbolic link is refused.", map[string]schema.Attribute{
			"path": tfvalue.Required("Absolute path of the file, the same on each host."),
			"format": formatAttribute("`raw` (default) or `qcow2`. When the binding is created, the header of the file is read: a "+
				"qcow2 image is only opened with `qcow2`, and only if it has no backing file, no data file, no encryption and no "+
				"persistent bitmaps. An explicit `raw` opens the file as raw, whatever its header is: for a raw disk on which a "+
				"guest has written the header of another format.", "raw", "qcow2"),
		}),
		"block": object("A block device of the hosts.", map[string]schema.Attribute{
			"path": tfvalue.Required("Absolute path of the device, the same on each host: preferably a link below `/dev/disk/by-id` " +
				"instead of `/dev/sdb`."),
			"format": formatAttribute("Set to `raw` to open a device that begins with the header of a qcow2 image, which is refused "+
				"otherwise when the binding is created: for a device on which a guest has written that header.", "raw"),
		}),
	}
	var one []path.Expression
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one = append(one, path.MatchRoot("source").AtName(name))
	}
	c := all[claimSource]
	c.Validators = []validator.Object{objectvalidator.ExactlyOneOf(one...)}
	all[claimSource] = c
	attributes := map[string]schema.Attribute{}
	for name, a := range all {
		attributes[name] = a
	}
	return attributes
}

func object(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: attributes}
}

func formatAttribute(description string, formats ...string) schema.Attribute {
	return tfvalue.Optional(description, stringvalidator.OneOf(formats...))
}

func identity(description string) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, MarkdownDescription: description, Validators: []validator.Int64{int64validator.Between(0, math.MaxInt32)},
	}
}

// excludes refuses two attributes beside another one.
func excludes(a, b string) validator.Bool {
	beside := path.MatchRelative().AtParent()
	return boolvalidator.ConflictsWith(beside.AtName(a), beside.AtName(b))
}

func rawAttribute() schema.Attribute {
	return formatAttribute("Set to `raw` to open an image that begins with the header of another format, which is refused otherwise when "+
		"the binding is created: for a disk on which a guest has written that header.", "raw")
}

func texted(description string) schema.Attribute {
	return schema.ListAttribute{
		Required: true, ElementType: types.StringType, MarkdownDescription: description,
		Validators: []validator.List{listvalidator.SizeAtLeast(1)},
	}
}

func claimAttribute() schema.SingleNestedAttribute {
	name := tfvalue.ObjectName()
	return object("A PersistentVolumeClaim. A claim that does not exist at plan may be created in the same apply. The apply waits "+
		"until the claim is bound, up to the create timeout.", map[string]schema.Attribute{
		"namespace":  tfvalue.Required("The claim's namespace.", name...),
		"claim_name": tfvalue.Required("The claim's name.", name...),
		"force_block": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "Attach the raw device of a volume with `volumeMode: Filesystem`: only for volumes " +
				"that predate volumeMode and have no filesystem, because a machine that writes to the device destroys the filesystem.",
		},
		"mount_path": tfvalue.Optional("Folder at which the hosts of the binding have a Filesystem volume mounted. Several hosts only " +
			"with a shared filesystem (NFS, CephFS, a claim that is ReadWriteMany): one on a device, such as ext4 on iSCSI, is corrupted " +
			"if two hosts mount it. The machine gets `disk.img` in that folder, or the folder itself with `shared_folder`. Works with " +
			"every type of PersistentVolume; required if QEMU can't open the volume itself. May have fields of the PersistentVolume in " +
			"braces, as `device_path`."),
		"device_path": tfvalue.Optional("Device as which the hosts of the binding have a Block volume, below `/dev/`, with fields of the " +
			"PersistentVolume in braces (kubectl's JSONPath): `/dev/longhorn/{.spec.csi.volumeHandle}`. Works with every type of " +
			"PersistentVolume. Each host is asked whether it has that device in the volume's size and, where it knows them, with the " +
			"volume's serial number and WWN. Not of a volume that its driver encrypts. The guide on PersistentVolumes has the " +
			"path for many drivers."),
		"attach": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "Have Kubernetes mount a Filesystem volume on the hosts, which are nodes of the cluster " +
				"(`kubernetes_node`): by a pod of `kubernetes.volume_image` on each, which does nothing, has the name `virtclaim-hold-` " +
				"and a hash, and stays until the binding is destroyed. Works with every driver whose volumes kubelet mounts; on several " +
				"hosts with claims that are ReadWriteMany. Needs the provider's `owner`. Instead of `mount_path`.",
			Validators: []validator.Bool{excludes("mount_path", "device_path")},
		},
		"shared_folder": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "Bind the filesystem of a Filesystem volume itself instead of its `disk.img`, for " +
				"`filesystems` of machines. Needs a volume that the hosts have as a folder: one of the type local or hostPath, or any " +
				"with `attach` or `mount_path`. Conflicts with `create_disk_image` and `format`.",
			Validators: []validator.Bool{excludes("create_disk_image", "format")},
		},
		"create_disk_image": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "Create `disk.img` if a Filesystem volume has none: raw, sparse, with the claim's " +
				"capacity. An existing file is never changed. The host must have the volume mounted with the option `nosymfollow` (Linux " +
				"5.10 or later), so that no symbolic link is followed: in `mountOptions` of the PersistentVolume, or in `/etc/fstab`. " +
				"Where QEMU opens the volume itself (NFS, GlusterFS), this needs `mount_path`. With `attach` all of that is so.",
		},
		"format": formatAttribute("Set to `raw` to open a `disk.img` that begins with the header of a qcow2 image, which is refused "+
			"otherwise when the binding is created: for a disk on which a guest has written that header. A `disk.img` is always raw. "+
			"Convert another image with `"+image.ConvertCommand("qcow2", "raw", "disk.img")+"` if you trust its author: "+
			"qemu-img copies the content of every file that the image references.", "raw"),
		"uid": identity("User id with which QEMU opens the `disk.img` of an NFS volume; 0 (root) if absent. A server with " +
			"`root_squash`, the default of most, maps root to the anonymous user: then set the owner of the file."),
		"gid": identity("Group id, as `uid`; the same number as `uid` if absent."),
		"select_node": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "Whether the apply selects a Kubernetes node for a claim whose StorageClass has " +
				"`volumeBindingMode: WaitForFirstConsumer`, if no pod has had that done: that of the first host, by the annotation " +
				"`volume.kubernetes.io/selected-node`, so that the claim is provisioned. `true` if absent; nothing is written with " +
				"`reserve_claims = false`.",
		},
		"monitors": schema.ListAttribute{
			Optional: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.SizeAtLeast(1)},
			MarkdownDescription: "Addresses at which the hosts reach the monitors of a Ceph volume, as `host` or `host:port`, if " +
				"those in the cluster can only be reached by pods.",
		},
		"ceph_config_map": object("ConfigMap in which ceph-csi has the monitors of its clusters. Defaults to those of ceph-csi and Rook.",
			map[string]schema.Attribute{
				"namespace": tfvalue.Optional("Its namespace; that of the driver's secret if absent."),
				"name":      tfvalue.Optional("Its name; `ceph-csi-config` or `rook-ceph-csi-config` if absent."),
				"key":       tfvalue.Optional("The key in it; `config.json` or `csi-cluster-config-json` if absent."),
			}),
	})
}

func iscsiAttribute() schema.SingleNestedAttribute {
	return object("A logical unit of an iSCSI target.", map[string]schema.Attribute{
		"portal": tfvalue.Required("Address of the target, `host` or `host:port`; the port defaults to 3260."),
		"iqn":    tfvalue.Required("Name of the target."),
		"lun": schema.Int64Attribute{
			Required: true, MarkdownDescription: "Number of the logical unit.",
			Validators: []validator.Int64{int64validator.Between(0, 16383)},
		},
		"initiator":           tfvalue.Optional("Initiator name to log in with."),
		"username":            tfvalue.Optional("CHAP user. Requires `password_wo`."),
		"password_wo":         writeOnlySecret("CHAP password.", "password_wo_version"),
		"password_wo_version": secretVersion("password_wo"),
		"secret_ref": tfvalue.SecretRefAttribute("A Kubernetes secret with the keys `node.session.auth.username` and " +
			"`node.session.auth.password`, instead of `username` and `password_wo`."),
	})
}

func rbdAttribute() schema.SingleNestedAttribute {
	return object("An image of a Ceph cluster.", map[string]schema.Attribute{
		"monitors":       texted("The cluster's monitors, as `host` or `host:port`, with version 1 of the protocol (port 6789)."),
		"pool":           tfvalue.Optional("Name of the pool; `rbd` if absent."),
		"namespace":      tfvalue.Optional("RADOS namespace in the pool. Defaults to the default namespace."),
		"image":          tfvalue.Required("Name of the image."),
		"username":       tfvalue.Optional("Ceph user, without the prefix `client.`. Requires `key_wo` or `secret_ref`."),
		"key_wo":         writeOnlySecret("The user's key, as Ceph prints it.", "key_wo_version"),
		"key_wo_version": secretVersion("key_wo"),
		"secret_ref": tfvalue.SecretRefAttribute("A Kubernetes secret instead of `key_wo`: with the key `key` for `username`, or, " +
			"without `username`, with the keys `userID` and `userKey` of ceph-csi."),
	})
}

func writeOnlySecret(description, version string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, WriteOnly: true,
		MarkdownDescription: description + " Write-only (Terraform 1.11 or newer): never in state or plan. Change `" + version +
			"` with it.",
	}
}

func secretVersion(of string) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, MarkdownDescription: "Any number; changing it sends the secret to the hosts again.",
		Validators: []validator.Int64{int64validator.AlsoRequires(path.MatchRelative().AtParent().AtName(of))},
	}
}
