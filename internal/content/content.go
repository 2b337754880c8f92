// Package content creates images in the storage pools of a host: blank disks, overlays, clones, and uploaded images. Each creation has a
// journal on the host, which distinguishes interrupted creations from finished ones and from volumes of other owners. The package depends
// neither on Terraform nor on Kubernetes.
package content

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/google/uuid"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Host are the calls of a libvirt host that this package needs.
type Host interface {
	LookupByName(ctx context.Context, name string) (uuid string, err error)
	Define(ctx context.Context, xml string) (uuid string, err error)
	StoredXML(ctx context.Context, uuid string) (string, error)
	LiveXML(ctx context.Context, uuid string) (string, error)
	State(ctx context.Context, uuid string) (host.State, error)
	Undefine(ctx context.Context, uuid string) error
	SetLiveMetadata(ctx context.Context, uuid, namespace, prefix, element string) error
	WaitStopped(ctx context.Context, uuid string) error
	WaitReleased(ctx context.Context, uuid, holder string) error
	Reserve(ctx context.Context, xml string) error
	List(ctx context.Context) ([]host.Listed, error)
	SecretsOfVolumes(ctx context.Context) (map[string]string, error)
	Hold(ctx context.Context, xml string) (release func(context.Context) error, err error)
	Domains(ctx context.Context) ([]host.Domain, error)

	PoolFree(ctx context.Context, pool string) (int64, error)
	CreateVolume(ctx context.Context, pool string, xml libvirtxml.StorageVolume, preallocate bool) error
	guard.Volumes
	DeleteVolume(ctx context.Context, pool, name string) error
	Overlays(ctx context.Context) ([]host.StorageVolume, error)
	Rescan(ctx context.Context, pool string) error
	ResizeVolume(ctx context.Context, pool, name string, bytes int64) error
	OpenUploads(ctx context.Context, c *host.UploadConn) error
	Upload(ctx context.Context, u host.Upload) error
	HasVolume(ctx context.Context, pool, name string) (bool, error)
	VolumeNames(ctx context.Context, pool string) ([]string, error)
	VolumePart(ctx context.Context, pool, name string, offset, n int64) ([]byte, error)
	IsUnfinished(ctx context.Context, pool, name string) (bool, error)
	UUID(ctx context.Context) (string, error)
	Locator
	Folders

	StartCopier(ctx context.Context, uuid string) (release func(), err error)
	FinishCopier(ctx context.Context, uuid string) error
	StopCopier(ctx context.Context, uuid string) error
	Pull(ctx context.Context, uuid, target string, report func(host.Progress)) error
}

// Spec describes a volume to be created.
type Spec struct {
	Pool string
	// Name is the volume's name; if it is empty, a name with Prefix is generated.
	Name, Prefix string
	// Mode is empty for a blank disk and for an upload.
	Mode volume.CopyMode
	// Content is the content to upload; nil for a copy and a blank disk.
	Content *Image
	// Base is the content of the shared image below the volume; Master is then set to that image.
	Base *Image
	// Layers are, instead of Base, those of a root file system, the lowest one first: each is a shared image over the one before.
	Layers []image.RootLayer
	// Root is the container image that has these layers.
	Root image.RootFS
	// Skipped is called with how many entries and attributes of the layers were left out, if there are any. It may be nil.
	Skipped func(entries int)
	// Master is the source of a copy, with its capacity; only the identity of its images is recorded.
	Master volume.Volume
	// Capacity is in bytes; 0 is that of the content or base.
	Capacity int64
	// IsFixed is whether that is the capacity of a volume that is there, which the content is for.
	IsFixed bool
	// Format is raw or qcow2, raw for blank disks only; empty is that of the content.
	Format string
	// ClusterSize is that of a qcow2 image, in bytes; 0 is QEMU's default.
	ClusterSize int64
	// Preallocation is off, metadata or falloc, as in qemu-img; for blank disks only, because an overlay reads its master where nothing is
	// allocated.
	Preallocation string
	// Precheck is nil if the master may be used now. It is called when the journal of a clone is visible to other processes, and again
	// after the copy; for an overlay, when its header names the master. It may be nil.
	Precheck func(context.Context) error
	// Confirm is nil if the complete volume, which has its identity, is what it must be. After an error it is removed. It may be nil.
	Confirm func(ctx context.Context, v host.StorageVolume, generation string) error

	// baseNames are the names of the shared images on the host, the lowest one first.
	baseNames []string
	// generation is that of the volume; a new one if it is empty.
	generation string
	// from is where the volume is whose disk moves here; nil for what is created.
	from *Former
}

func (s Spec) admit(ctx context.Context) error {
	if s.Precheck == nil {
		return nil
	}
	return s.Precheck(ctx)
}

// Image is the content of an upload.
type Image struct {
	// ID is the same for the same content, and reveals no secret.
	ID string
	// Open returns the image's bytes. The reader ends with io.EOF only after all of them were verified.
	Open func(context.Context) (io.ReadCloser, error)

	// layer is, instead of Open, a layer.
	layer *layer
}

// Created is a finished local image.
type Created struct {
	host.StorageVolume
	// Generation is random for each image, and is its identity on the host.
	Generation string
	// Bases are the shared images below it, the lowest one last; none without one.
	Bases []volume.Image
}

// ErrForeign is the error of an existing volume that no interrupted creation of this owner has left.
var ErrForeign = errors.New("it was left alone")

// ErrTaken is ErrForeign for a volume that nothing says who has made.
var ErrTaken = fmt.Errorf("%w", ErrForeign)

// Creator creates the volumes of one configuration.
type Creator struct {
	// Owner identifies the configuration; without one, interrupted creations can't be continued.
	Owner string

	mu      sync.Mutex
	mine    map[string]bool
	mutexes map[string]*mutex
}

// claim reserves a volume for one resource of this process, so that two never share one; false if another resource has it.
func (m *Creator) claim(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mine[key] {
		return false
	}
	if m.mine == nil {
		m.mine = map[string]bool{}
	}
	m.mine[key] = true
	return true
}

func (m *Creator) release(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mine, key)
}

// Make creates a volume on the host of that key, or continues an interrupted creation of the same owner. report is called with the progress
// of a copy. After an error nothing is left, or the error names it.
func (m *Creator) Make(ctx context.Context, key string, h Host, s Spec, report func(host.Progress)) (made Created, err error) {
	if s.Name == "" {
		if err := m.generateName(ctx, key, h, &s); err != nil {
			return Created{}, err
		}
	} else if !m.claim(s.claimKey(key)) {
		return Created{}, fmt.Errorf("another resource of this configuration makes the volume %s in the storage pool %s of host %s; "+
			"give each its own name", s.Name, s.Pool, key)
	}
	s.baseNames, err = s.namesOfBases(ctx, h)
	if err == nil {
		made, err = m.make(ctx, key, h, s, report)
	}
	if err != nil {
		m.release(s.claimKey(key))
	}
	return made, err
}

func (s Spec) claimKey(hostKey string) string { return hostKey + "/" + s.Pool + "/" + s.Name }

// generateName generates a name, or reuses that of a partial volume of an interrupted creation of the same configuration, which otherwise
// would never be removed.
func (m *Creator) generateName(ctx context.Context, key string, h Host, s *Spec) error {
	left, err := m.staleNames(ctx, h, *s)
	if err != nil {
		return err
	}
	for _, name := range left {
		s.Name = name
		if m.claim(s.claimKey(key)) {
			return nil
		}
	}
	s.Name = s.Prefix + strings.ToLower(rand.Text()[:10])
	m.claim(s.claimKey(key))
	return nil
}

// staleNames are the partial volumes in journals of the same owner and prefix. Their former specification does not matter, because they are
// created again.
func (m *Creator) staleNames(ctx context.Context, h Host, s Spec) (names []string, err error) {
	if m.Owner == "" {
		return nil, nil
	}
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range domains {
		if !isJournal(d.Name) || d.Stored == "" || d.Live != "" {
			continue // another process is creating it
		}
		note, ok, err := domainxml.ParseJournal(d.Stored)
		if errors.Is(err, newer.Err) {
			continue // it keeps its volume, and this one gets another name
		}
		if err != nil {
			return nil, err
		}
		if ok && note.Owner == m.Owner && note.Pool == s.Pool && note.Prefix != "" && note.Prefix == s.Prefix {
			names = append(names, note.Volume)
		}
	}
	return names, nil
}

// newGeneration is a random generation.
func newGeneration() string { return uuid.NewString() }
