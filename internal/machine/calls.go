package machine

import (
	"context"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// Host is what a Manager asks of a host.
type Host interface {
	guard.Host
	guard.Waiter
	content.Locator
	content.OpenFiles

	// Definitions.
	LookupByName(ctx context.Context, name string) (uuid string, err error)
	Define(ctx context.Context, xml string) (uuid string, err error)
	Redefine(ctx context.Context, xml string) error
	Undefine(ctx context.Context, uuid string) error
	StoredXML(ctx context.Context, uuid string) (string, error)
	IsPersistent(ctx context.Context, uuid string) (bool, error)
	Autostart(ctx context.Context, uuid string) (bool, error)
	SetAutostart(ctx context.Context, uuid string, on bool) error
	Rename(ctx context.Context, uuid, name string) error

	// Power, and the domain that runs.
	Start(ctx context.Context, uuid string) error
	Stop(ctx context.Context, uuid string, how host.Shutdown) error
	State(ctx context.Context, uuid string) (host.State, error)
	LiveXML(ctx context.Context, uuid string) (string, error)
	SavedXML(ctx context.Context, uuid string) (string, error)
	DiskError(ctx context.Context, uuid string) (target string, noSpace bool, err error)
	Addresses(ctx context.Context, uuid string, agent bool) map[string][]string
	AskAgent(ctx context.Context, uuid, command string, arguments map[string]any, answer any) error
	Leases(ctx context.Context) (map[host.Lease]int64, error)
	AwaitEvery(ctx context.Context, interval time.Duration, uuid string, done func(context.Context) (bool, error)) error

	// Changes of the domain that runs.
	Attach(ctx context.Context, uuid, deviceXML string) error
	AwaitDevice(ctx context.Context, uuid, target string) error
	ChangeDevice(ctx context.Context, uuid, deviceXML string) error
	ChangeInterface(ctx context.Context, uuid, deviceXML string) error
	SetIOTune(ctx context.Context, uuid, target string, limits map[string]uint64) error
	GrowDevice(ctx context.Context, uuid, target string, bytes int64) error
	SetLiveMetadata(ctx context.Context, uuid, namespace, prefix, element string) error
	SetLiveNames(ctx context.Context, uuid, title, description string) error
	SetVCPUs(ctx context.Context, uuid string, n uint) error
	PutOnline(ctx context.Context, uuid string, vcpus uint) error
	PinVCPU(ctx context.Context, uuid string, vcpu uint, cpus map[uint]bool) error
	SetAction(ctx context.Context, uuid string, panics bool, action string) error
	SetMemory(ctx context.Context, uuid string, kib uint, there func(liveXML string) (bool, error)) error
	MemoryChanges(ctx context.Context, uuid string, other func(liveXML string) (bool, error)) (bool, error)

	// Moves to another host.
	MigrateTo(ctx context.Context, target, uuid string, how host.Migration) error
	MigratableXML(ctx context.Context, uuid string) (string, error)
	IsMigrating(ctx context.Context, uuid string) (bool, error)
	Resume(ctx context.Context, uuid string) error
	StopCopier(ctx context.Context, uuid string) error
	ReadStateFiles(ctx context.Context, folder string, names ...string) (map[string][]byte, error)
	WriteStateFiles(ctx context.Context, folder string, files map[string][]byte) error

	// Storage, and the chains of disks.
	BlockJob(ctx context.Context, uuid, target string) (string, error)
	Snapshots(ctx context.Context, uuid string) ([]string, error)
	Overlays(ctx context.Context) ([]host.StorageVolume, error)
	KnownOverlays(ctx context.Context, pool string) ([]host.StorageVolume, error)
	VolumePart(ctx context.Context, pool, name string, offset, n int64) ([]byte, error)
	DeleteVolume(ctx context.Context, pool, name string) error
}

// located is a host whose domains show the paths of their disks, also of disks that name a storage pool and a volume. It looks at each file
// once.
type located struct {
	Host
	files *content.FileCache
}

func locate(h Host) located { return located{h, &content.FileCache{}} }

func (h located) LiveXML(ctx context.Context, uuid string) (string, error) {
	text, err := h.Host.LiveXML(ctx, uuid)
	if err != nil {
		return "", err
	}
	return guard.WithPaths(ctx, h.Host, text)
}

func (h located) StoredXML(ctx context.Context, uuid string) (string, error) {
	text, err := h.Host.StoredXML(ctx, uuid)
	if err != nil {
		return "", err
	}
	return guard.WithPaths(ctx, h.Host, text)
}

func (h located) File(ctx context.Context, path string, head int) (host.File, error) {
	return h.files.File(ctx, h.Host, "", path, head)
}
