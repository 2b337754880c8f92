package virtualmachine

import (
	"context"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// domains are the calls of a host that a manager needs.
type domains interface {
	LookupByName(ctx context.Context, name string) (uuid string, err error)
	Define(ctx context.Context, xml string) (uuid string, err error)
	StoredXML(ctx context.Context, uuid string) (string, error)
	LiveXML(ctx context.Context, uuid string) (string, error)
	SavedXML(ctx context.Context, uuid string) (string, error)
	State(ctx context.Context, uuid string) (host.State, error)
	IsPersistent(ctx context.Context, uuid string) (bool, error)
	DiskError(ctx context.Context, uuid string) (target string, noSpace bool, err error)
	Start(ctx context.Context, uuid string) error
	DeleteVolume(ctx context.Context, pool, name string) error
	VolumePart(ctx context.Context, pool, name string, offset, n int64) ([]byte, error)
	Stop(ctx context.Context, uuid string, force bool) error
	Undefine(ctx context.Context, uuid string) error

	guard.Host
	guard.Waiter
	content.Locator
	content.OpenFiles
	KnownOverlays(ctx context.Context, pool string) ([]host.StorageVolume, error)
	AwaitDevice(ctx context.Context, uuid, target string) error
	chains
	Attach(ctx context.Context, uuid, deviceXML string) error
	ChangeInterface(ctx context.Context, uuid, deviceXML string) error
	Addresses(ctx context.Context, uuid string, agent bool) map[string][]string
	Leases(ctx context.Context) (map[host.Lease]int64, error)
	AwaitEvery(ctx context.Context, interval time.Duration, uuid string, done func(context.Context) (bool, error)) error
	SetLiveMetadata(ctx context.Context, uuid, namespace, prefix, element string) error
	ChangeDevice(ctx context.Context, uuid, deviceXML string) error
	GrowDevice(ctx context.Context, uuid, target string, bytes int64) error
	SetLiveNames(ctx context.Context, uuid, title, description string) error
	Autostart(ctx context.Context, uuid string) (bool, error)
	SetAutostart(ctx context.Context, uuid string, on bool) error
	SetVCPUs(ctx context.Context, uuid string, n uint) error
	SetMemory(ctx context.Context, uuid string, kib uint, there func(liveXML string) (bool, error)) error
	MemoryChanges(ctx context.Context, uuid string, other func(liveXML string) (bool, error)) (bool, error)
}

// chains are a host's calls for the chains of disks beside the XML of domains.
type chains interface {
	BlockJob(ctx context.Context, uuid, target string) (string, error)
	Snapshots(ctx context.Context, uuid string) ([]string, error)
	Overlays(ctx context.Context) ([]host.StorageVolume, error)
}

// located is a host whose running domains show the paths of their disks, also of disks that name a storage pool and a volume. It looks at each
// file once.
type located struct {
	domains
	files *content.FileCache
}

func locate(h domains) located { return located{h, &content.FileCache{}} }

func (h located) LiveXML(ctx context.Context, uuid string) (string, error) {
	text, err := h.domains.LiveXML(ctx, uuid)
	if err != nil {
		return "", err
	}
	return guard.WithPaths(ctx, h.domains, text)
}

func (h located) File(ctx context.Context, path string, head int) (host.File, error) {
	return h.files.File(ctx, h.domains, "", path, head)
}
