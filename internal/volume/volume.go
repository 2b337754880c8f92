// Package volume has the value that sources return, disks extend and machines use: what QEMU can open, as a chain of images, top first. It
// depends on neither Terraform, Kubernetes nor libvirt, and it never holds a secret or a DNS name resolved to an address.
package volume

// Volume is a chain of images. Images[0] is the one that a guest sees; each following image backs the one before it.
type Volume struct {
	// Capacity is the guest-visible size in bytes; nil if it is unknown.
	Capacity *int64
	// CopyOnRead copies data that the guest reads from the backing images into the top image.
	CopyOnRead bool
	Images     []Image
}

// Image is one link of the chain. Empty strings mean absent.
type Image struct {
	// Type is libvirt's disk source type: network, file, block or volume; dir for a folder that machines share, which is no disk.
	Type string
	// Format is QEMU's image format: raw or qcow2; dir for a folder.
	Format string
	// Protocol is libvirt's network protocol name, such as iscsi; only for Type network.
	Protocol string
	// Name is the name within the protocol (for iSCSI: iqn/lun), or the absolute path of a file or block device.
	Name string
	// Query is the raw query of a URL; only for HTTP and HTTPS.
	Query   string
	Servers []Server
	// Auth references the credentials; nil if the storage needs none.
	Auth *Auth
	// Initiator is the iSCSI initiator name that QEMU logs in with.
	Initiator string
	// TLS is whether the connection is encrypted: always for HTTPS, and for NBD if it is configured.
	TLS bool
	// TLSVerify is whether the server's certificate is verified. Only HTTPS can skip that: for NBD each host's libvirt has the
	// certificates, and always verifies.
	TLSVerify bool
	// User and Group are the numeric identity for NFS, in decimal digits.
	User, Group string
	AccessMode  AccessMode
	// Hosts are the keys of the hosts that may use the image, sorted.
	Hosts []string
	// Binding is the image's binding in the form of BindingRef; empty for a local image that virtclaim created.
	Binding string
	// Generation is random for each local image that is created, so that a recreated one under the same name is recognized.
	Generation string
}

// Server is one way to reach network storage.
type Server struct {
	Host string
	// Port is nil for the protocol's default. Sources set the default explicitly, because libvirt adds it to stored definitions; only NFS
	// has none, because libvirt refuses one there.
	Port *int64
	// Transport is tcp, unix or rdma; empty means tcp.
	Transport string
	Socket    string
}

// Auth references credentials without containing them: the value is in the libvirt secret SecretUUID on each host.
type Auth struct {
	// Type is libvirt's name for the type of credentials: iscsi (a CHAP password) or ceph (a cephx key).
	Type       string
	Username   string
	SecretUUID string
}

// AccessMode defines which virtual machines may use an image, and how.
type AccessMode string

const (
	// WriteExclusive is for one machine, which may write; no other machine may read or write at the same time. It is the default.
	WriteExclusive AccessMode = "write-exclusive"
	// WriteShared is for any number of machines, all of which may write: their guests share a cluster filesystem.
	WriteShared AccessMode = "write-shared"
	// ReadShared is for any number of machines, none of which may write.
	ReadShared AccessMode = "read-shared"
)

// CompatibleWith reports whether storage may be used under both modes by two machines at the same time.
func (m AccessMode) CompatibleWith(other AccessMode) bool { return m == other && m != WriteExclusive }

// Credentials are the credentials that a source has read for a volume's Auth. They are passed only to a libvirt secret.
type Credentials struct {
	// Type and Username are those of the volume's Auth.
	Type, Username string
	// Secret is the raw password or key.
	Secret []byte
	// Version changes when the secret does: a Kubernetes resourceVersion, or the user's own number.
	Version string
}

// String omits the secret, which must not be in logs and error texts.
func (c Credentials) String() string { return "credentials of " + c.Username }

// GoString omits the secret in %#v, too.
func (c Credentials) GoString() string { return c.String() }

// CopyMode defines how a disk uses its master. The empty mode is for a disk without a master.
type CopyMode string

const (
	// CopyOnWrite stores writes in an overlay; the master is only read.
	CopyOnWrite CopyMode = "copy-on-write"
	// CopyOnRead is CopyOnWrite that also stores the data that is read.
	CopyOnRead CopyMode = "copy-on-read"
	// Clone copies all of the master, which is not used afterwards.
	Clone CopyMode = "clone"
)

// Over returns the volume of a local image that was created from a master in a copy mode; the master is not in the chain of a clone or of a
// blank disk.
func Over(top Image, capacity *int64, mode CopyMode, master Volume) Volume {
	v := Volume{Capacity: capacity, CopyOnRead: mode == CopyOnRead, Images: []Image{top}}
	if mode == CopyOnWrite || mode == CopyOnRead {
		v.Images = append(v.Images, master.Images...)
	}
	return v
}
