package content_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// layered is a disk over layers, each with a file of that name.
func layered(t *testing.T, disk string, files ...string) content.Spec {
	t.Helper()
	s, chain := content.Spec{Pool: "ssd", Name: disk, Format: "qcow2"}, ""
	for _, file := range files {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeReg, Mode: 0o644}), w.Close()); err != nil {
			t.Fatal(err)
		}
		chain += "/" + file
		s.Layers = append(s.Layers, image.RootLayer{ChainID: chain, Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b.Bytes())), nil
		}})
	}
	return s
}

// chainOf are the names of the files below a disk.
func chainOf(h *fakeHost, name string) (names []string) {
	for v := h.volumes["ssd/"+name]; v != nil && v.Backing != ""; {
		names = append(names, path.Base(v.Backing))
		v = h.volumes["ssd/"+path.Base(v.Backing)]
	}
	return names
}

// Each layer is uploaded once, images have the layers in common that they have at the bottom, and the last disk takes with it what no other one has.
func TestMake_Layers(t *testing.T) {
	h, maker := newHost(), &content.Creator{Owner: "prod"}
	made := map[string]content.Created{}
	for _, c := range []struct {
		spec            content.Spec
		uploads, volume int
	}{
		{layered(t, "a", "base", "python", "app"), 3, 4},
		{layered(t, "b", "base", "python", "app"), 3, 5},
		{layered(t, "c", "base", "python", "other", "more"), 5, 8},
		{layered(t, "d", "base"), 5, 9},
		{layered(t, "e", "other", "python"), 7, 12},
	} {
		disk, err := maker.Make(t.Context(), "a", h, c.spec, quiet)
		if err != nil || h.uploads != c.uploads || len(h.volumes) != c.volume || disk.Capacity != rootfs.Size {
			t.Fatalf("%s: %v, %d bytes, after %d uploads the host has %d volumes", c.spec.Name, err, disk.Capacity, h.uploads, len(h.volumes))
		}
		names := chainOf(h, disk.Name)
		if len(names) != len(c.spec.Layers) || len(disk.Bases) != len(names) {
			t.Fatalf("%s is over %v, and says %v", disk.Name, names, disk.Bases)
		}
		for n, i := range disk.Bases {
			if path.Base(i.Name) != names[n] || i.Format != "qcow2" {
				t.Errorf("image %d below %s is %+v", n, disk.Name, i)
			}
		}
		made[disk.Name] = disk
	}
	for _, c := range []struct {
		disk string
		left int
	}{{"a", 11}, {"c", 8}, {"b", 5}, {"e", 2}, {"d", 0}} {
		var bases []string
		for _, i := range made[c.disk].Bases {
			bases = append([]string{path.Base(i.Name)}, bases...)
		}
		err := maker.Remove(t.Context(), "a", h, "ssd", c.disk, made[c.disk].Generation)
		if err == nil {
			err = maker.CollectGarbage(t.Context(), "a", h, "ssd", bases...)
		}
		if err != nil || len(h.volumes) != c.left {
			t.Errorf("without %s: %v, and the host has %d volumes", c.disk, err, len(h.volumes))
		}
	}
	if len(h.domains)+len(h.secrets) > 0 {
		t.Errorf("left are %v, %v", h.domains, h.secrets)
	}
}

// A layer that is lost is made again over those that are there, and those above stay.
func TestMake_LayerIsLost(t *testing.T) {
	h := newHost()
	mustMake(t, h, layered(t, "a", "base", "python", "app"))
	names := chainOf(h, "a")
	before := bytes.Clone(h.volumes["ssd/"+names[1]].content)
	delete(h.volumes, "ssd/"+names[1])
	mustMake(t, h, layered(t, "b", "base", "python", "app", "more"))
	if got := h.volumes["ssd/"+names[1]]; h.uploads != 5 || !bytes.Equal(got.content, before) {
		t.Errorf("after %d uploads the layer is another one", h.uploads)
	}
}

// A volume with the name of a layer's image that is not this image is refused, and stays, wherever it is in the stack.
func TestMake_LayerIsAnother(t *testing.T) {
	for name, c := range map[string]struct {
		layer  int  // from the top
		isLost bool // the lowest one is, so that all are looked at once more
		change func(*fakeVolume)
	}{
		"over a foreign file":                 {0, false, func(v *fakeVolume) { v.Backing = "/etc/shadow" }},
		"over a foreign file, over one to do": {0, true, func(v *fakeVolume) { v.Backing = "/etc/shadow" }},
		"over another layer":                  {1, false, func(v *fakeVolume) { v.Backing = "/ssd/" + content.BasePrefix + strings.Repeat("0", 64) }},
		"over nothing":                        {1, true, func(v *fakeVolume) { v.Backing = "" }},
		"the lowest one, over a file":         {2, false, func(v *fakeVolume) { v.Backing = "/etc/shadow" }},
		"of another size":                     {1, false, func(v *fakeVolume) { v.Capacity *= 2 }},
		"raw":                                 {2, false, func(v *fakeVolume) { v.Format = "raw" }},
	} {
		h := newHost()
		mustMake(t, h, layered(t, "a", "base", "python", "app"))
		names := chainOf(h, "a")
		v := h.volumes["ssd/"+names[c.layer]]
		c.change(v)
		v.content = []byte("something else")
		if c.isLost {
			delete(h.volumes, "ssd/"+names[2])
		}
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, layered(t, "b", "base", "python", "app"), quiet)
		if err == nil || !strings.Contains(err.Error(), "volume "+v.Name+" in storage pool ssd is ") ||
			!strings.Contains(err.Error(), "virsh vol-delete "+v.Name+" --pool ssd") {
			t.Errorf("%s: %v", name, err)
		}
		if h.volumes["ssd/b"] != nil || h.volumes["ssd/"+v.Name] == nil {
			t.Errorf("%s: the host has %v", name, h.volumes)
		}
	}
}

// A refused layer is told by its number and image, and what was left out of the others is counted once.
func TestMake_LayerIsRefused(t *testing.T) {
	h := newHost()
	s := layered(t, "a", "base", ".wh..wh.aufs", "etc/.wh..wh.plnk")
	var skipped []int
	s.Skipped = func(entries int) { skipped = append(skipped, entries) }
	mustMake(t, h, s)
	if len(skipped) != 1 || skipped[0] != 2 {
		t.Errorf("left out were %v", skipped)
	}
	s = layered(t, "b", "base", "../python")
	s.Layers[1].Image = "a.example/b:1"
	_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, s, quiet)
	if err == nil || !strings.Contains(err.Error(), `layer 2 of 2 of the container image a.example/b:1: "../python": its path`) {
		t.Error(err)
	}
}

// What an image is stays as long as its highest layer, whatever disk has that.
func TestNotedImage(t *testing.T) {
	h, maker := newHost(), &content.Creator{Owner: "prod"}
	noted := func(digest string) bool {
		t.Helper()
		is, err := content.NotedImage(t.Context(), h, "ssd", "a.example/b@"+digest, digest)
		if err != nil {
			if !strings.Contains(err.Error(), "Make one disk of it with IfNotPresent") {
				t.Error(err)
			}
			return false
		}
		if is.Digest != digest || len(is.Layers) != 2 || is.Layers[1].ChainID != "/base/app" || is.Entrypoint[0] != "/bin/"+digest {
			t.Errorf("%s is %+v", digest, is)
		}
		if _, err := is.Layers[0].Open(t.Context()); err == nil || !strings.Contains(err.Error(), "the registry is not asked") {
			t.Error(err)
		}
		return true
	}
	made := map[string]content.Created{}
	for digest, environment := range map[string]int{"one": 1, "two": 1, "long": 70_000, "": 1} {
		s := layered(t, "disk"+digest, "base", "app")
		s.Root = image.RootFS{Digest: digest, Layers: s.Layers, Entrypoint: []string{"/bin/" + digest}, Environment: []string{strings.Repeat("x", environment)}}
		made[digest] = mustMake(t, h, s)
	}
	above := mustMake(t, h, layered(t, "above", "base", "app", "more"))
	if !noted("one") || !noted("two") || noted("long") || noted("three") || noted("") {
		t.Errorf("the host has %v", h.secrets)
	}
	remove := func(disk string, of content.Created) {
		t.Helper()
		if err := maker.Remove(t.Context(), "a", h, "ssd", disk, of.Generation); err != nil {
			t.Fatal(err)
		}
		if err := maker.CollectGarbage(t.Context(), "a", h, "ssd", path.Base(of.Bases[0].Name)); err != nil {
			t.Fatal(err)
		}
	}
	for digest, of := range made {
		remove("disk"+digest, of)
	}
	if !noted("one") || !noted("two") {
		t.Error("an image is not known any more whose layers are all there")
	}
	if remove("above", above); noted("one") || len(h.secrets) > 0 {
		t.Errorf("left are %v", h.secrets)
	}
}

// A layer is not deleted while a disk over it is being made.
func TestCollectGarbage_KeepsWhatIsAwaited(t *testing.T) {
	h, maker := newHost(), &content.Creator{Owner: "prod"}
	spec := layered(t, "a", "base", "python")
	open := spec.Layers[1].Open
	collected := 0
	spec.Layers[1].Open = func(ctx context.Context) (io.ReadCloser, error) {
		for key := range h.volumes {
			if name := path.Base(key); content.IsBase(name) && h.volumes[key].content != nil {
				if err := (&content.Creator{}).CollectGarbage(ctx, "a", h, "ssd", name); err != nil {
					t.Error(err)
				}
				collected++
			}
		}
		return open(ctx)
	}
	if _, err := maker.Make(t.Context(), "a", h, spec, quiet); err != nil || collected != 1 || h.uploads != 2 {
		t.Errorf("%v after %d uploads, collected %d times", err, h.uploads, collected)
	}
}

// counting counts the calls for which a host has to look something up.
type counting struct {
	*fakeHost
	calls int
}

func (h *counting) Hold(ctx context.Context, xml string) (func(context.Context) error, error) {
	h.calls++
	return h.fakeHost.Hold(ctx, xml)
}

func (h *counting) LookupByName(ctx context.Context, name string) (string, error) {
	h.calls++
	return h.fakeHost.LookupByName(ctx, name)
}

func (h *counting) Domains(ctx context.Context) ([]host.Domain, error) {
	h.calls++
	return h.fakeHost.Domains(ctx)
}

func (h *counting) Overlays(ctx context.Context) ([]host.StorageVolume, error) {
	h.calls++
	return h.fakeHost.Overlays(ctx)
}

func (h *counting) Volume(ctx context.Context, pool, name string) (host.StorageVolume, error) {
	h.calls++
	return h.fakeHost.Volume(ctx, pool, name)
}

func (h *counting) SecretOfVolume(ctx context.Context, usage string) (string, error) {
	h.calls++
	return h.fakeHost.SecretOfVolume(ctx, usage)
}

// What the end of a disk costs does not depend on how many layers other disks have.
func TestCollectGarbage_BesideAStack(t *testing.T) {
	costs := map[int]int{}
	for _, layers := range []int{1, 2, 20} {
		h, maker := &counting{fakeHost: newHost()}, &content.Creator{Owner: "prod"}
		files := make([]string, layers)
		for n := range files {
			files[n] = fmt.Sprint(n)
		}
		mustMake(t, h.fakeHost, layered(t, "stack", files...))
		made := mustMake(t, h.fakeHost, over("web", bytesOf(qcow2(1<<20))))
		err := maker.Remove(t.Context(), "a", h, "ssd", made.Name, made.Generation)
		h.calls = 0
		if err == nil {
			err = maker.CollectGarbage(t.Context(), "a", h, "ssd", path.Base(made.Bases[0].Name))
		}
		if err != nil || len(h.volumes) != layers+1 {
			t.Fatalf("beside %d layers: %v, and the host has %d volumes", layers, err, len(h.volumes))
		}
		costs[layers] = h.calls
	}
	if costs[20] != costs[1] || costs[2] != costs[1] {
		t.Errorf("the calls beside that many layers are %v", costs)
	}
}

// A stack that an interrupted destroy has left goes with another disk, also where another one still has its lower layers.
func TestCollectGarbage_LeftStack(t *testing.T) {
	h, maker := newHost(), &content.Creator{Owner: "prod"}
	mustMake(t, h, layered(t, "kept", "base", "python"))
	for _, name := range []string{"app", "other"} {
		left := mustMake(t, h, layered(t, name, "base", "python", name, "more"))
		if err := maker.Remove(t.Context(), "a", h, "ssd", left.Name, left.Generation); err != nil {
			t.Fatal(err)
		}
	}
	made := mustMake(t, h, over("web", bytesOf(qcow2(1<<20))))
	err := maker.Remove(t.Context(), "a", h, "ssd", made.Name, made.Generation)
	if err == nil {
		err = maker.CollectGarbage(t.Context(), "a", h, "ssd", path.Base(made.Bases[0].Name))
	}
	if err != nil || len(h.volumes) != 3 || len(chainOf(h, "kept")) != 2 {
		t.Errorf("%v, and the host has %d volumes", err, len(h.volumes))
	}
}

// What deletes images while a disk begins finds no layer that the disk goes on from: between the two there is always the mutex.
func TestMake_LayersStayFromTheBeginningOn(t *testing.T) {
	h, maker := newHost(), &content.Creator{Owner: "prod"}
	former := mustMake(t, h, layered(t, "a", "base", "python"))
	if err := maker.Remove(t.Context(), "a", h, "ssd", former.Name, former.Generation); err != nil {
		t.Fatal(err)
	}
	collected := errors.New("it was not called")
	h.released = func() {
		collected = (&content.Creator{}).CollectGarbage(t.Context(), "a", h, "ssd", path.Base(former.Bases[0].Name))
	}
	mustMake(t, h, layered(t, "b", "base", "python", "app"))
	if collected != nil || h.uploads != 3 {
		t.Errorf("%v, and there were %d uploads", collected, h.uploads)
	}
}

func TestMake_LayersFail(t *testing.T) {
	bad := errors.New("its digest is another")
	for name, c := range map[string]struct {
		layer func() (io.Reader, error)
		want  string
	}{
		"open":    {func() (io.Reader, error) { return nil, bad }, bad.Error()},
		"read":    {func() (io.Reader, error) { return failing{bad}, nil }, bad.Error()},
		"hostile": {func() (io.Reader, error) { return strings.NewReader(strings.Repeat("x", 2048)), nil }, "layer 2 of 2"},
		"a tail": {func() (io.Reader, error) {
			return io.MultiReader(bytes.NewReader(make([]byte, 1024)), bytes.NewReader(make([]byte, 2<<20))), nil
		}, "goes on for more"},
	} {
		h := newHost()
		spec := layered(t, "a", "base", "python")
		spec.Layers[1].Open = func(context.Context) (io.ReadCloser, error) {
			r, err := c.layer()
			return io.NopCloser(r), err
		}
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(h.volumes)+len(h.domains) != 0 {
			t.Errorf("%s: %v, and the host has %v, %v", name, err, h.volumes, h.domains)
		}
	}
}

// What can't become a disk changes nothing on the host.
func TestMake_LayersAreCheckedBefore(t *testing.T) {
	many := make([]string, 128)
	for n := range many {
		many[n] = fmt.Sprint(n)
	}
	small := layered(t, "a", "base")
	small.Capacity = rootfs.Size - 1024
	for want, spec := range map[string]content.Spec{
		"128 layers, and a disk at most 127":           layered(t, "a", many...),
		"has 16Gi, and the disk is to have 16777215Ki": small,
	} {
		h := newHost()
		if _, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet); err == nil || !strings.Contains(err.Error(), want) || h.changes > 0 {
			t.Errorf("%v after %d changes", err, h.changes)
		}
	}
}
