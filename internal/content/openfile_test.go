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

// openFile is a host with one file.
type openFile struct {
	content.Folders
	labels         []string
	locked, linked bool
	// asked is what was opened.
	asked string
}

func (f *openFile) RegularFile(context.Context, string, int) ([]byte, error) {
	if f.linked {
		return nil, host.ErrNotRegular
	}
	return nil, nil
}

func (f *openFile) Labels(context.Context) ([]string, error) { return f.labels, nil }

func (f *openFile) Capacity(_ context.Context, diskXML string) (int64, error) {
	f.asked = diskXML
	if f.locked {
		return 0, errors.New("refused")
	}
	return 1, nil
}

// QEMU's lock proves which file a guest writes to. What pods may have replaced is looked at before, and stays whose it is; under SELinux the
// guest would lose its file.
func TestHasOpen(t *testing.T) {
	disk := volume.Image{Type: "file", Format: "raw", Name: "/ssd/d"}
	claim := volume.Image{Type: "file", Format: "raw", Name: "/claim/disk.img", Binding: "b"}
	for name, c := range map[string]struct {
		host  openFile
		image volume.Image
		want  bool
		asked string
		err   error
	}{
		"a disk that is locked":      {openFile{labels: []string{"dac"}, locked: true}, disk, true, "<source file=\"/ssd/d\"></source>", nil},
		"a disk nobody writes to":    {openFile{labels: []string{"dac"}}, disk, false, "<readonly></readonly>", nil},
		"a claim's that is locked":   {openFile{labels: []string{"dac"}, locked: true}, claim, true, `<seclabel model="dac" relabel="no">`, nil},
		"a claim's, without owners":  {openFile{}, claim, false, `<source file="/claim/disk.img"></source>`, nil},
		"a claim's that is a link":   {openFile{linked: true}, claim, false, "", host.ErrNotRegular},
		"a disk with SELinux labels": {openFile{labels: []string{"selinux", "dac"}}, disk, true, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := content.HasOpen(t.Context(), &c.host, c.image)
			if is != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %v, %v", is, err)
			}
			if !strings.Contains(c.host.asked, c.asked) || c.asked == "" && c.host.asked != "" {
				t.Errorf("asked was %q", c.host.asked)
			}
		})
	}
}
