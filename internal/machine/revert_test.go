package machine

import (
	"context"
	"errors"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// stubborn is a host with one running domain that accepts neither memory nor a disk, and only valid names.
type stubborn struct {
	oneDomain
	live string
	err  error
}

func (h *stubborn) LiveXML(context.Context, string) (string, error) { return h.live, nil }

func (h *stubborn) SetVCPUs(context.Context, string, uint) error { return h.err }

func (h *stubborn) SetIOTune(context.Context, string, string, map[string]uint64) error { return h.err }

func (h *stubborn) Attach(context.Context, string, string) error { return h.err }

func (h *stubborn) SetLiveNames(_ context.Context, _, title, description string) error {
	live, err := domainxml.Read(h.live)
	if err != nil || title == "unfit" {
		return errors.Join(h.err, err)
	}
	is, err := live.Machine()
	if err != nil {
		return err
	}
	is.Title, is.Description = title, description
	h.live, err = live.Update(is)
	return err
}

func (h *stubborn) SetLiveMetadata(context.Context, string, string, string, string) error { return nil }

func TestVirtualMachine_RefusedChangeIsNotStored(t *testing.T) {
	was := domainxml.Machine{
		Name: "web", VCPUs: 1, MaxVCPUs: 4, Memory: 65536, DomainType: "qemu", Disks: map[string]domainxml.Disk{},
		Metadata: domainxml.Metadata{Phase: domainxml.Ready},
	}
	more := was
	more.VCPUs, more.Title = 2, "taken"
	unfit := more
	unfit.Title, unfit.Description = "unfit", "of what is unfit"
	plugged := was
	plugged.Title = "taken"
	plugged.Disks = map[string]domainxml.Disk{"data": {
		Volume: volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: "/data", AccessMode: volume.WriteExclusive}}},
		Device: domainxml.Fixed, Bus: "virtio",
	}}
	refused := errors.New("refused")
	for _, c := range []struct {
		name   string
		want   domainxml.Machine
		err    error
		stored bool
		title  string
	}{
		{"processors", more, refused, false, "taken"},
		{"disk", plugged, refused, false, "taken"},
		{"title", unfit, refused, false, ""},
		{"title, interrupted", unfit, &host.UnreachableError{Err: refused}, true, "unfit"},
		{"processors, interrupted", more, &host.UnreachableError{Err: refused}, true, "taken"},
		{"disk, interrupted", plugged, &host.UnreachableError{Err: refused}, true, "taken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := domainxml.Build(was)
			if err != nil {
				t.Fatal(err)
			}
			h := &stubborn{oneDomain: oneDomain{stored: text}, live: text, err: c.err}
			l := Manager{log: quiet, host: h}
			if err := l.redefine(t.Context(), "", c.want); err != nil {
				t.Fatal(err)
			}
			stored, err := l.ReadStored(t.Context(), "")
			var live *domainxml.Domain
			if err == nil {
				live, err = l.readLive(t.Context(), "")
			}
			if err == nil {
				_, _, err = l.attach(t.Context(), "", stored, live, was, c.want)
			}
			if !errors.Is(err, refused) {
				t.Fatalf("the refusal is lost: %v", err)
			}
			if err := l.revert(t.Context(), "", was, c.want, err); !errors.Is(err, refused) {
				t.Errorf("the refusal is lost: %v", err)
			}
			is, err := domainxml.Parse(h.stored)
			if err != nil {
				t.Fatal(err)
			}
			_, disk := is.Disks["data"]
			if got := is.VCPUs == 2 || disk; got != c.stored || is.Title != c.title || (is.Description != "") != (c.title == "unfit") {
				t.Errorf("stored is %+v", is)
			}
		})
	}
}

// Limits that QEMU refuses are not stored; those that the interrupted call may have set are.
func TestVirtualMachine_RefusedLimitIsNotStored(t *testing.T) {
	with := func(n uint64) domainxml.Machine {
		return domainxml.Machine{
			Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Metadata: domainxml.Metadata{Phase: domainxml.Ready},
			Disks: map[string]domainxml.Disk{"data": {
				Volume: volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: "/data", AccessMode: volume.WriteExclusive}}},
				Device: domainxml.Fixed, Bus: "virtio", Tuning: domainxml.Tuning{IOTune: domainxml.IOTune{0: n}},
			}},
		}
	}
	refused := errors.New("refused")
	for want, err := range map[uint64]error{5: refused, 6: &host.UnreachableError{Err: refused}} {
		text, failed := domainxml.Build(with(5))
		if failed != nil {
			t.Fatal(failed)
		}
		h := &stubborn{oneDomain: oneDomain{stored: text}, live: text, err: err}
		m := Manager{log: quiet, host: h}
		live, failed := m.readLive(t.Context(), "")
		if failed := errors.Join(failed, m.redefine(t.Context(), "", with(6))); failed != nil {
			t.Fatal(failed)
		}
		if _, failed = m.limit(t.Context(), "", live, with(6)); !errors.Is(failed, refused) {
			t.Fatalf("the refusal is lost: %v", failed)
		}
		_ = m.revert(t.Context(), "", with(5), with(6), failed)
		is, failed := domainxml.Parse(h.stored)
		if got := is.Disks["data"].IOTune[0]; failed != nil || got != want {
			t.Errorf("%v: stored is %d, not %d: %v", err, got, want, failed)
		}
	}
}
