package content_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

var errBroken = errors.New("the connection broke")

// fakeHost is a host in memory that can fail at each of its changes, before or after the change is done.
type fakeHost struct {
	domains map[string]*fakeDomain       // by name
	volumes map[string]*fakeVolume       // by pool/name
	secrets map[string]libvirtxml.Secret // by usage
	files   map[string][]byte            // the headers of images in no pool, by path
	free    int64
	// modified is when each file was last written to, by path.
	modified map[string]string
	// failAt is the change that fails, counted from 1; with after it is done nevertheless. With dead all later calls fail, as after a
	// process was killed.
	failAt      int
	after, dead bool
	changes     int
	killed      bool
	torn        bool // copies end early, without an error
	waited      func()
	released    func() // called once after the first domain has ended
	meanwhile   func() // called between the lookup of a volume and its creation
	uploads     int
	// onto is what a volume of other storage has: nothing, "half" or "whole".
	onto string
}

type fakeDomain struct {
	name, uuid, xml string
	// live is the definition with which a held domain was started.
	live   string
	active bool
	// transient domains are removed when they end; held domains end with their connection.
	transient, held bool
}

type fakeVolume struct {
	host.StorageVolume
	// copied is whether the copy has ended without an error, whole whether all of it is on the storage.
	copied, whole bool
	content       []byte
	head          []byte
	// length is the length of a file that libvirt can't describe.
	length int64
}

func newHost() *fakeHost {
	return &fakeHost{domains: map[string]*fakeDomain{}, volumes: map[string]*fakeVolume{}, secrets: map[string]libvirtxml.Secret{}, free: 1 << 40}
}

// change calls do, or fails.
func (h *fakeHost) change(do func()) error {
	if h.killed {
		return errBroken
	}
	h.changes++
	fails := h.changes == h.failAt
	if !fails || h.after {
		do()
	}
	if !fails {
		return nil
	}
	h.killed = h.dead
	if h.killed {
		h.disconnect()
	}
	return errBroken
}

// disconnect ends all domains that are held by connections.
func (h *fakeHost) disconnect() {
	for name, d := range h.domains {
		if d.held {
			d.active = false
		}
		if d.held && d.transient {
			delete(h.domains, name)
		}
	}
}

func (h *fakeHost) byUUID(uuid string) (*fakeDomain, error) {
	for _, d := range h.domains {
		if d.uuid == uuid {
			return d, nil
		}
	}
	return nil, host.ErrNotFound
}

func (h *fakeHost) LookupByName(_ context.Context, name string) (string, error) {
	if d, ok := h.domains[name]; ok {
		return d.uuid, nil
	}
	return "", host.ErrNotFound
}

func (h *fakeHost) Define(_ context.Context, text string) (string, error) {
	var x libvirtxml.Domain
	if err := x.Unmarshal(text); err != nil {
		return "", err
	}
	if d, ok := h.domains[x.Name]; ok && d.uuid != x.UUID {
		return "", fmt.Errorf("domain %s already exists", x.Name)
	}
	return x.UUID, h.change(func() {
		if d := h.domains[x.Name]; d != nil {
			d.xml, d.transient = text, false
			return
		}
		h.domains[x.Name] = &fakeDomain{name: x.Name, uuid: x.UUID, xml: text}
	})
}

func (h *fakeHost) Hold(_ context.Context, text string) (func(context.Context) error, error) {
	var x libvirtxml.Domain
	if err := x.Unmarshal(text); err != nil {
		return nil, err
	}
	d := h.domains[x.Name]
	if d != nil && (d.active || d.uuid != x.UUID) {
		return nil, host.ErrExists
	}
	if d == nil {
		d = &fakeDomain{name: x.Name, uuid: x.UUID, xml: text, transient: true}
	}
	err := h.change(func() { d.live, d.active, d.held, h.domains[x.Name] = text, true, true, d })
	if err != nil {
		h.disconnect()
		return nil, err
	}
	return func(context.Context) error {
		if h.domains[d.name] != d {
			return host.ErrNotFound
		}
		defer func() { // its connection ends in any case
			if d.active = false; d.transient {
				delete(h.domains, d.name)
			}
			if then := h.released; then != nil {
				h.released = nil
				then()
			}
		}()
		return h.change(func() {})
	}, nil
}

// Reserve is Define for a name that no domain has.
func (h *fakeHost) Reserve(ctx context.Context, text string) error {
	var x libvirtxml.Domain
	if err := x.Unmarshal(text); err != nil {
		return err
	}
	if h.domains[x.Name] != nil {
		return host.ErrExists
	}
	_, err := h.Define(ctx, text)
	return err
}

func (h *fakeHost) List(context.Context) (all []host.Listed, err error) {
	if h.killed {
		return nil, errBroken
	}
	for _, d := range h.domains {
		all = append(all, host.Listed{Name: d.name, UUID: d.uuid, Active: d.active})
	}
	return all, nil
}

func (h *fakeHost) WaitReleased(ctx context.Context, _, holder string) error {
	return h.WaitStopped(ctx, holder)
}

func (h *fakeHost) SetLiveMetadata(context.Context, string, string, string, string) error { return nil }

func (h *fakeHost) WaitStopped(context.Context, string) error {
	if h.waited != nil {
		h.waited()
	}
	return nil
}

func (h *fakeHost) StoredXML(_ context.Context, uuid string) (string, error) {
	d, err := h.byUUID(uuid)
	if err != nil {
		return "", err
	}
	return d.xml, nil
}

func (h *fakeHost) State(_ context.Context, uuid string) (host.State, error) {
	if h.killed {
		return host.State{}, errBroken
	}
	d, err := h.byUUID(uuid)
	if err != nil {
		return host.State{}, err
	}
	return host.State{Active: d.active}, nil
}

func (h *fakeHost) Undefine(_ context.Context, uuid string) error {
	d, err := h.byUUID(uuid)
	if err != nil {
		return err
	}
	return h.change(func() {
		if d.transient = true; !d.active {
			delete(h.domains, d.name)
		}
	})
}

func (h *fakeHost) Domains(context.Context) (all []host.Domain, err error) {
	for _, d := range h.domains {
		domain := host.Domain{Name: d.name, UUID: d.uuid, Stored: d.xml}
		if d.active {
			domain.Live = d.xml
		}
		if d.transient {
			domain.Stored = ""
		}
		all = append(all, domain)
	}
	return all, nil
}

func (h *fakeHost) StartCopier(_ context.Context, uuid string) (func(), error) {
	d, err := h.byUUID(uuid)
	if err != nil {
		return nil, err
	}
	return func() { d.active = false }, h.change(func() { d.active, d.held = true, true })
}

// FinishCopier writes what was copied back to the storage.
func (h *fakeHost) FinishCopier(_ context.Context, uuid string) error {
	d, err := h.byUUID(uuid)
	if err != nil {
		return err
	}
	return h.change(func() {
		d.active = false
		if v := h.target(d); v != nil {
			v.whole = v.copied
		}
	})
}

// target returns the volume that a copier copies into, which is above what it is copied from.
func (h *fakeHost) target(d *fakeDomain) (top *fakeVolume) {
	first := len(d.xml)
	for _, v := range h.volumes {
		if at := strings.Index(d.xml, `file="`+v.Path+`"`); at >= 0 && at < first {
			top, first = v, at
		}
	}
	return top
}

var chain = regexp.MustCompile(`(?s)<backingStore.*</backingStore>`)

// LiveXML has a chain until all data is copied.
func (h *fakeHost) LiveXML(_ context.Context, uuid string) (string, error) {
	d, err := h.byUUID(uuid)
	if err != nil {
		return "", err
	}
	if v := h.target(d); v != nil && v.copied {
		return chain.ReplaceAllString(d.xml, ""), nil
	}
	if d.active && d.live != "" {
		return d.live, nil
	}
	return d.xml, nil
}

func (h *fakeHost) StopCopier(_ context.Context, uuid string) error {
	d, err := h.byUUID(uuid)
	if err != nil {
		return err
	}
	return h.change(func() {
		if d.active = false; d.transient {
			delete(h.domains, d.name)
		}
	})
}

func (h *fakeHost) Pull(_ context.Context, uuid, _ string, report func(host.Progress)) error {
	d, err := h.byUUID(uuid)
	if err != nil {
		return err
	}
	report(host.Progress{Done: 1, All: 2})
	return h.change(func() {
		if v := h.target(d); v != nil {
			v.copied = !h.torn
		}
	})
}

// Upload stores the content; a torn upload succeeds with a broken image.
func (*fakeHost) OpenUploads(context.Context, *host.UploadConn) error { return nil }

func (h *fakeHost) Upload(ctx context.Context, u host.Upload) error {
	v := h.volumes[u.Pool+"/"+u.Name]
	if v == nil {
		return host.ErrNotFound
	}
	h.uploads++
	content, err := io.ReadAll(u.Image)
	if u.Head != nil && err == nil {
		content = append(u.Head(), content...)
	}
	if err == nil && u.Check != nil {
		err = u.Check(int64(len(content)), bytes.NewReader(content))
	}
	if err == nil {
		err = u.BeforeCommit(ctx)
	}
	if err != nil {
		return err
	}
	return h.change(func() {
		v.content, v.Physical = content, int64(len(content))
		if u.Size != nil {
			v.Physical = u.Size(v.Physical)
		}
		v.Capacity = v.Physical
	})
}

// running is an error unless the domain runs.
func (h *fakeHost) running(uuid string) error {
	if d, err := h.byUUID(uuid); err != nil || !d.active {
		return errors.Join(err, errors.New("the domain does not run"))
	}
	return nil
}

func (h *fakeHost) Attach(_ context.Context, uuid, _ string) error {
	return cmp.Or(h.running(uuid), h.change(func() {}))
}

// CopyOnto has written a part when it fails.
func (h *fakeHost) CopyOnto(_ context.Context, uuid, _, _ string, _ func(host.Progress)) error {
	if err := h.running(uuid); err != nil || h.killed {
		return cmp.Or(err, errBroken)
	}
	h.onto = "half"
	return h.change(func() { h.onto = "whole" })
}

func (h *fakeHost) VolumeDigest(context.Context, string, string) (string, error) { return "", nil }

// CopyDisk copies an end of the volume of other storage.
func (h *fakeHost) CopyDisk(_ context.Context, _, to string) error {
	for _, v := range h.volumes {
		if strings.Contains(to, `file="`+v.Path+`"`) {
			return h.change(func() { v.content = append([]byte(h.onto), make([]byte, v.Capacity)...) })
		}
	}
	return host.ErrNotFound
}
