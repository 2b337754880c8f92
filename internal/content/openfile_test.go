package content_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// openFile is a host with one volume, and a guest that has a file open.
type openFile struct {
	content.Folders
	locked, readable bool
	labels           bool
	gone             bool
	space            int64
	// open is the space of the guest's file, reading by reading; the last one holds.
	open []int64
}

func (f *openFile) Capacity(_ context.Context, diskXML string) (int64, error) {
	if !f.readable || f.locked && !strings.Contains(diskXML, "<shareable") {
		return 0, errors.New("refused")
	}
	return 1, nil
}

func (f *openFile) Labels(context.Context) ([]string, error) {
	if f.labels {
		return []string{"selinux", "dac"}, nil
	}
	return []string{"dac"}, nil
}

func (f *openFile) VolumeAt(context.Context, string) (host.StorageVolume, error) {
	if f.gone {
		return host.StorageVolume{}, host.ErrNotFound
	}
	return host.StorageVolume{Allocation: f.space}, nil
}

func (f *openFile) OpenAllocation(context.Context, string, string) (int64, error) {
	now := f.open[0]
	if len(f.open) > 1 {
		f.open = f.open[1:]
	}
	return now, nil
}

// QEMU's lock proves which file a guest writes to; where nobody else may open the file, the space that it takes does.
func TestHasOpen(t *testing.T) {
	for name, c := range map[string]struct {
		host openFile
		want bool
	}{
		"the file is locked":                          {openFile{locked: true, readable: true}, true},
		"nobody writes to it":                         {openFile{readable: true}, false},
		"can't be opened, and has equal space":        {openFile{space: 8, open: []int64{8}}, true},
		"can't be opened, and grows meanwhile":        {openFile{space: 8, open: []int64{4, 12}}, true},
		"can't be opened, and was read while it grew": {openFile{space: 8, open: []int64{4, 6, 8}}, true},
		"can't be opened, and has more space":         {openFile{space: 16, open: []int64{8}}, false},
		"can't be opened, and has less space":         {openFile{space: 0, open: []int64{8}}, false},
		"can't be opened, and is in no pool":          {openFile{gone: true, open: []int64{8}}, true},
		"is labelled, and has equal space":            {openFile{readable: true, labels: true, space: 8, open: []int64{8}}, true},
		"is labelled, and has another space":          {openFile{locked: true, readable: true, labels: true, space: 9, open: []int64{8}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if is, err := content.HasOpen(t.Context(), &c.host, "", "vda", volume.Image{Type: "file", Format: "raw", Name: "/ssd/d"}); is != c.want || err != nil {
				t.Errorf("got %v, %v", is, err)
			}
		})
	}
}
