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
	labels []string
	// locked is whether a QEMU process writes to the file, unreadable whether no process can open it.
	locked, unreadable, linked, missing bool
	// asked records what was opened.
	asked string
}

func (f *openFile) File(context.Context, string, int) (host.File, error) {
	if f.missing {
		return host.File{}, errors.Join(host.ErrNotFound, host.ErrNotRegular)
	}
	if f.linked {
		return host.File{Irregular: host.ErrNotRegular}, nil
	}
	return host.File{}, nil
}

func (f *openFile) Labels(context.Context) ([]string, error) { return f.labels, nil }

var errRefused = errors.New("refused")

func (f *openFile) Opens(_ context.Context, diskXML string) error {
	f.asked = diskXML
	if f.unreadable || f.locked && !strings.Contains(diskXML, "<shareable>") {
		return errRefused
	}
	return nil
}

// QEMU's lock proves which file a guest writes to. The file keeps its owner, and a claim's must be a regular one; on SELinux hosts nothing is opened.
func TestHasOpen(t *testing.T) {
	disk := volume.Image{Type: "file", Format: "raw", Name: "/ssd/d"}
	claim := volume.Image{Type: "file", Format: "raw", Name: "/claim/disk.img", Binding: "b"}
	for name, c := range map[string]struct {
		host         openFile
		image        volume.Image
		open, proven bool
		asked        string
		err          error
	}{
		"a disk that is locked":        {openFile{labels: []string{"dac"}, locked: true}, disk, true, true, `<seclabel model="dac" relabel="no">`, nil},
		"a disk without a writer":      {openFile{labels: []string{"dac"}}, disk, false, true, "<readonly></readonly>", nil},
		"a disk that can't be opened":  {openFile{unreadable: true}, disk, false, false, "<shareable>", errRefused},
		"a claim's file, locked":       {openFile{labels: []string{"dac"}, locked: true}, claim, true, true, `<seclabel model="dac" relabel="no">`, nil},
		"a claim's file, without DAC":  {openFile{}, claim, false, true, `<source file="/claim/disk.img"></source>`, nil},
		"a claim's file, now a link":   {openFile{linked: true}, claim, false, false, "", host.ErrNotRegular},
		"a claim's file, missing":      {openFile{missing: true}, claim, false, true, "", nil},
		"a disk on a host with labels": {openFile{labels: []string{"selinux", "dac"}}, disk, true, false, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			open, proven, err := content.HasOpen(t.Context(), &c.host, c.image)
			if open != c.open || proven != c.proven || !errors.Is(err, c.err) {
				t.Errorf("got %v, %v, %v", open, proven, err)
			}
			if !strings.Contains(c.host.asked, c.asked) || c.asked == "" && c.host.asked != "" {
				t.Errorf("asked was %q", c.host.asked)
			}
		})
	}
}
