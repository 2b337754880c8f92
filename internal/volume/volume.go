// Package volume is the value that flows through virtclaim: what QEMU can open, as a chain of images, top first.
// Sources make it, disks wrap it, machines use it. It is pure: it knows neither Terraform, Kubernetes nor libvirt,
// and it never holds a secret or a DNS name turned into an address.
package volume

// Volume is a chain of images. Images[0] is the one that a guest sees; each following one backs the one before it.
type Volume struct {
	// Capacity is the guest-visible size in bytes; nil while nobody has measured it.
	Capacity *int64
	// CopyOnRead keeps in the top image what the guest reads from its backing.
	CopyOnRead bool
	Images     []Image
}

// Image is one link of the chain. Empty strings mean absent.
type Image struct {
	// Type is libvirt's disk source type: network, file, block or volume.
	Type string
	// Format is QEMU's image format: raw or qcow2.
	Format string
	// Protocol is libvirt's network protocol name, such as iscsi; only for Type network.
	Protocol string
	// Name is the name within the protocol (for iSCSI: iqn/lun), or the absolute path of a file or block device.
	Name string
	// Query is that of a URL, as it is written there; only for HTTP and HTTPS.
	Query   string
	Servers []Server
	// Auth names the credentials; nil when the storage asks for none.
	Auth *Auth
	// Initiator is the iSCSI initiator name that QEMU logs in with.
	Initiator string
	// TLS says that the connection is encrypted. HTTPS always is; NBD is where somebody asks for it.
	TLS bool
	// TLSVerify says that the server must prove who it is. Only HTTPS can do without: for NBD a host's libvirt has the
	// certificates, and always asks for the server's.
	TLSVerify bool
	// User and Group are the numeric identity for NFS, in decimal digits.
	User, Group string
	AccessMode  AccessMode
	// Hosts are the keys of the hosts that may use the image, sorted.
	Hosts []string
	// Binding is the binding that the image is from, as BindingRef writes it; empty for a local image that was made.
	Binding string
	// Generation is random for each local image that is made, so that a remade one under the same name is told apart.
	Generation string
}

// Server is one way to reach network storage.
type Server struct {
	Host string
	// Port is nil when the protocol's default holds. Sources write the default out, because libvirt adds it to what it
	// stores; only NFS has none, because libvirt takes none there.
	Port *int64
	// Transport is tcp, unix or rdma; empty means tcp.
	Transport string
	Socket    string
}

// Auth names credentials without holding them: the value lives in the libvirt secret SecretUUID on each host.
type Auth struct {
	// Type is libvirt's name for the kind of credential: iscsi (a CHAP password) or ceph (a cephx key).
	Type       string
	Username   string
	SecretUUID string
}

// AccessMode says which virtual machines may use an image, and how.
type AccessMode string

const (
	// WriteExclusive is for one machine, which may write; no other one reads or writes meanwhile. It is the default.
	WriteExclusive AccessMode = "write-exclusive"
	// WriteShared is for any number of machines, all of which may write: their guests share a cluster filesystem.
	WriteShared AccessMode = "write-shared"
	// ReadShared is for any number of machines, none of which may write.
	ReadShared AccessMode = "read-shared"
)

// CompatibleWith reports whether storage may be used under both modes by two machines at the same time.
func (m AccessMode) CompatibleWith(other AccessMode) bool { return m == other && m != WriteExclusive }

// Credentials are what a source found for a volume's Auth. They go from the source to a libvirt secret and nowhere else.
type Credentials struct {
	// Type and Username are those of the volume's Auth.
	Type, Username string
	// Secret is the raw password or key.
	Secret []byte
	// Version changes when the secret does: a Kubernetes resourceVersion, or the user's own number.
	Version string
}

// String keeps the secret out of logs and error texts.
func (c Credentials) String() string { return "credentials of " + c.Username }

// GoString keeps the secret out of %#v, too.
func (c Credentials) GoString() string { return c.String() }

// CopyMode says what becomes of a master. None, the empty mode, is for a volume that has none.
type CopyMode string

const (
	// CopyOnWrite keeps what is written in an overlay of its own; the master is only read.
	CopyOnWrite CopyMode = "copy-on-write"
	// CopyOnRead is CopyOnWrite that keeps what is read, too.
	CopyOnRead CopyMode = "copy-on-read"
	// Clone copies all of the master, which is not used any more then.
	Clone CopyMode = "clone"
)

// Over is the volume of a local image that was made of a master in a copy mode; of none for a blank one or a clone.
func Over(top Image, capacity *int64, mode CopyMode, master Volume) Volume {
	v := Volume{Capacity: capacity, CopyOnRead: mode == CopyOnRead, Images: []Image{top}}
	if mode == CopyOnWrite || mode == CopyOnRead {
		v.Images = append(v.Images, master.Images...)
	}
	return v
}
