package content_test

import (
	"errors"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Each overlay has its own record of the file below it, so that one of a newer content is none of the other's concern.
func TestCheckMasterRecords(t *testing.T) {
	const file, first, second = "/claim/disk.img", "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	h := newHost()
	chain := func(overlay string) []volume.Image {
		return []volume.Image{{Type: "file", Name: "/ssd/" + overlay, Generation: overlay}, {Type: "file", Name: file, Binding: "binding"}}
	}
	over := func(overlay string) []volume.Image {
		return append([]volume.Image{{Type: "file", Name: "/ssd/top", Generation: "33333333-3333-4333-8333-333333333333"}}, chain(overlay)...)
	}
	check := func(what string, chain []volume.Image, want error) {
		t.Helper()
		if err := content.CheckMasterRecords(t.Context(), h, chain); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("a host that does not show files", chain(first), nil)
	h.modified = map[string]string{file: "100.5"}
	check("without a record", chain(first), nil)
	check("unchanged", chain(first), nil)
	h.modified[file] = "200.5"
	check("replaced", chain(first), content.ErrMasterChanged)
	check("an overlay of the overlay", over(first), content.ErrMasterChanged)
	check("another overlay", chain(second), nil)
	check("no file any more", append(chain(first)[:1], volume.Image{Type: "file", Name: "/elsewhere", Binding: "binding"}), content.ErrMasterChanged)
	if err := content.ForgetMasterRecord(t.Context(), h, chain(first)); err != nil || len(h.secrets) != 1 {
		t.Errorf("%v: %v", err, h.secrets)
	}
	check("forgotten", chain(first), nil)
	h.modified[file] = "100.5"
	check("restored", chain(second), content.ErrMasterChanged)
}
