// Package content makes local images, in the storage pools of a host: blank disks, overlays, clones, and images that come
// from elsewhere. What it makes it journals on the host, so that whatever is interrupted can be told from what is finished, and from what others made. It
// knows neither Terraform nor Kubernetes.
package content

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
	"libvirt.org/go/libvirtxml"
)

// cleanUpTime bounds what is undone after a failure, when the operation's own time may be over.
const cleanUpTime = 30 * time.Second

// Host is what is needed of a libvirt host.
type Host interface {
	LookupByName(ctx context.Context, name string) (uuid string, err error)
	Define(ctx context.Context, xml string) (uuid string, err error)
	StoredXML(ctx context.Context, uuid string) (string, error)
	LiveXML(ctx context.Context, uuid string) (string, error)
	State(ctx context.Context, uuid string) (host.State, error)
	Undefine(ctx context.Context, uuid string) error
	SetLiveMetadata(ctx context.Context, uuid, namespace, prefix, element string) error
	WaitStopped(ctx context.Context, uuid string) error
	Hold(ctx context.Context, xml string) (release func(context.Context) error, err error)
	Domains(ctx context.Context) ([]host.Domain, error)

	PoolFree(ctx context.Context, pool string) (int64, error)
	CreateVolume(ctx context.Context, pool string, xml libvirtxml.StorageVolume, preallocate bool) error
	Volume(ctx context.Context, pool, name string) (host.StorageVolume, error)
	DeleteVolume(ctx context.Context, pool, name string) error
	Overlays(ctx context.Context) ([]host.StorageVolume, error)
	Rescan(ctx context.Context, pool string) error
	ResizeVolume(ctx context.Context, pool, name string, bytes int64) error
	Upload(ctx context.Context, u host.Upload) error
	IsUnfinished(ctx context.Context, pool, name string) (bool, error)
	HasLength(ctx context.Context, pool, name string, bytes int64) (bool, error)
	UUID(ctx context.Context) (string, error)
	Identities
	Folders
	Files

	StartCopier(ctx context.Context, uuid string) (release func(), err error)
	FinishCopier(ctx context.Context, uuid string) error
	StopCopier(ctx context.Context, uuid string) error
	Pull(ctx context.Context, uuid, target string, report func(host.Progress)) error
}

// Spec is what to make.
type Spec struct {
	Pool string
	// Name is the volume's; if it is empty, Prefix and something made up is.
	Name, Prefix string
	// Mode is empty for a blank disk, and for one that is uploaded.
	Mode volume.CopyMode
	// Content is what the volume is to have; nil for a copy and a blank disk.
	Content *Image
	// Base is what the volume is made over, which disks of the same pool share; then Master is found out.
	Base *Image
	// Master is what is copied, with its capacity; only its images' identity is noted.
	Master volume.Volume
	// Capacity is in bytes; 0 leaves it to the content or base.
	Capacity int64
	// Format is raw or qcow2, raw for blank disks only; empty leaves it to the content.
	Format string
	// ClusterSize is that of a qcow2 image, in bytes; 0 leaves it to QEMU.
	ClusterSize int64
	// Preallocation is off, metadata or falloc, as qemu-img has them; for blank disks only, since an overlay reads its
	// master where nothing is allocated.
	Preallocation string
	// Precheck tells whether the master may be copied now. It is asked when the journal of a clone shows everybody what is being
	// copied, and again when that is done, and when an overlay names its master; nil allows it.
	Precheck func(context.Context) error `json:"-"`

	// baseName is that of Base on the host.
	baseName string
}

func (s Spec) admit(ctx context.Context) error {
	if s.Precheck == nil {
		return nil
	}
	return s.Precheck(ctx)
}

// Image is content that comes from elsewhere.
type Image struct {
	// ID is the same for the same content, and tells nothing that is secret.
	ID string
	// Open gives the image's bytes. Their end comes only when all of them are proven to be right.
	Open func(context.Context) (io.ReadCloser, error) `json:"-"`
}

// Created is a local image that is finished.
type Created struct {
	host.StorageVolume
	// Generation is random for each image, and its identity on the host.
	Generation string
	// Base is what it is over and shares with others; empty without.
	Base volume.Image
}

// ErrForeign is the error of a volume that is there already and was not made by this configuration.
var ErrForeign = errors.New("it was not made by this configuration, and was left alone")

// Creator makes the content of one configuration.
type Creator struct {
	// Owner names the configuration; without one, what an interrupted creation left can't be taken over.
	Owner string

	mu      sync.Mutex
	mine    map[string]bool
	mutexes map[string]*mutex
}

// claim takes a volume for this process, so that two resources never share one; false when another one has it.
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

// Make makes a volume on the host of that key, or goes on with what an interrupted creation of the same owner left of it.
// report is told how a copy gets on. When it fails nothing is left, or the error says what is.
func (m *Creator) Make(ctx context.Context, key string, h Host, s Spec, report func(host.Progress)) (made Created, err error) {
	if s.Name == "" {
		if err := m.generateName(ctx, key, h, &s); err != nil {
			return Created{}, err
		}
	} else if !m.claim(s.claimKey(key)) {
		return Created{}, fmt.Errorf("another resource of this configuration makes the volume %s in the storage pool %s of host %s; "+
			"give each its own name", s.Name, s.Pool, key)
	}
	if s.Base != nil {
		s.baseName, err = s.Base.baseName(ctx, h)
	}
	if err == nil {
		made, err = m.make(ctx, key, h, s, report)
	}
	if err == nil && s.Base != nil {
		made.Base, err = BaseOf(ctx, h, made.StorageVolume)
	}
	if err != nil {
		m.release(s.claimKey(key))
	}
	return made, err
}

func (s Spec) claimKey(hostKey string) string { return hostKey + "/" + s.Pool + "/" + s.Name }

// generateName makes a name up, or takes that of a volume that an interrupted creation of the same configuration left half made:
// nobody else could ever find that. A finished one is left alone, since it may well be in the state of another resource
// that this run has not read.
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

// staleNames are the volumes that journals of the same owner and prefix name as half made. What was to become of them does not
// matter: they are made anew.
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
			continue // somebody works on what is active
		}
		note, ok, err := domainxml.ParseJournal(d.Stored)
		if err != nil {
			return nil, err
		}
		s.Name = note.Volume
		if ok && note.Phase == domainxml.Creating && note.Owner == m.Owner && note.Pool == s.Pool &&
			note.Prefix != "" && note.Prefix == s.Prefix {
			names = append(names, note.Volume)
		}
	}
	return names, nil
}

// digest is of all that the volume is made from. Where the master's storage is reached does not matter.
func (s Spec) digest() string {
	type master struct{ Type, Protocol, Name, Generation string }
	var masters []master
	for _, i := range s.Master.Images {
		masters = append(masters, master{i.Type, i.Protocol, i.Name, i.Generation})
	}
	s.Master = volume.Volume{}
	text, _ := json.Marshal(struct { // strings and numbers always can be
		Spec
		Masters []master
	}{s, masters})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// newGeneration is random.
func newGeneration() string { return uuid.NewString() }
