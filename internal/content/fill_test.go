package content_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// target is a volume of other storage.
func target() volume.Volume {
	return volume.Volume{Capacity: size(1 << 20), Images: []volume.Image{{
		Type: "network", Protocol: "iscsi", Format: "raw", Name: "iqn.2025-01.io.example:target/1", AccessMode: volume.WriteExclusive,
	}}}
}

// masterFile is an image whose changes are noticed by a record.
var masterFile = volume.Image{Type: "file", Format: "raw", Name: "/claim/disk.img", Binding: "binding", AccessMode: volume.ReadShared}

func nothing(context.Context) error { return nil }

// filling fills that volume, which no machine uses.
func filling(s content.Spec) content.Fill {
	s.Pool = "ssd"
	return content.Fill{
		Target: target(), Source: s, Content: "content", Begin: nothing, End: nothing,
		Acquire: func(context.Context, string, string) error { return nil },
	}
}

// fill fills a volume with a Creator of its own, as the next apply would.
func fill(t *testing.T, h *fakeHost, f content.Fill) error {
	t.Helper()
	return (&content.Creator{Owner: "prod"}).Fill(t.Context(), "a", h, f, quiet)
}

// again is a host after the failure.
func (h *fakeHost) again() *fakeHost {
	h.failAt, h.killed = 0, false
	return h
}

// phase is that of the journal of filling the volume, which must name it; ok is false without one.
func phase(t *testing.T, h *fakeHost) (is string, ok bool) {
	t.Helper()
	d := h.domains["virtclaim-"+content.FillID(target())]
	if d == nil {
		return "", false
	}
	note, ok, err := domainxml.ParseJournal(d.xml)
	if err != nil || !ok || !strings.Contains(note.Target, target().Images[0].Name) {
		t.Errorf("the journal is %s: %v", d.xml, err)
	}
	return note.Phase, true
}

// left is what a host has beside the volume that was filled.
func left(h *fakeHost) string {
	if len(h.domains)+len(h.volumes)+len(h.secrets) == 0 {
		return ""
	}
	return fmt.Sprint(h.domains, h.volumes, h.secrets)
}

// Each change fails once, or is the last one of a killed process: then the volume is untouched and nothing is left, or the journal says that it
// is not complete. The next apply fills it, or gives it up, and leaves nothing.
func TestFill_FailureAtEachCall(t *testing.T) {
	for name, spec := range map[string]content.Spec{
		"blank":               {},
		"raw image":           {Content: bytesOf(make([]byte, 100<<10))},
		"qcow2 image":         {Content: bytesOf(qcow2(1 << 20))},
		"over a shared image": {Base: bytesOf(qcow2(1 << 20))},
		"another volume":      {Mode: volume.CopyOnWrite, Master: master()},
		"a file of a claim":   {Mode: volume.CopyOnWrite, Master: volume.Volume{Capacity: size(1 << 20), Images: []volume.Image{masterFile}}},
	} {
		for n := 1; ; n++ {
			reached := false
			for _, dead := range []bool{false, true} {
				for _, after := range []bool{false, true} {
					reached = failFill(t, name, spec, n, dead, after, func(h *fakeHost, _ string) {
						if err := fill(t, h, filling(spec)); err != nil || h.onto != "whole" {
							t.Errorf("the next apply: the volume is %s: %v", h.onto, err)
						}
					}) || reached
					failFill(t, name, spec, n, dead, after, func(h *fakeHost, before string) {
						isHalf, err := (&content.Creator{Owner: "prod"}).ForgetFill(t.Context(), "a", h, target())
						if err != nil || before == "half" && !isHalf {
							t.Errorf("it is given up: half is %t: %v", isHalf, err)
						}
					})
				}
			}
			if !reached {
				break
			}
		}
	}
}

// failFill fails at that change, and puts it right; reached is false if there are not so many.
func failFill(t *testing.T, name string, spec content.Spec, n int, dead, after bool, putRight func(h *fakeHost, onto string)) (reached bool) {
	t.Helper()
	h := newHost()
	h.modified = map[string]string{masterFile.Name: "100.5"}
	h.failAt, h.dead, h.after = n, dead, after
	err := fill(t, h, filling(spec))
	if h.changes < n {
		return false
	}
	what := fmt.Sprintf("%s, change %d, dead %t, after %t: the volume is %q: %v", name, n, dead, after, h.onto, err)
	is, has := phase(t, h)
	switch {
	case err == nil:
		if h.onto != "whole" || left(h) != "" {
			t.Errorf("%s, and left is %s", what, left(h))
		}
		return true
	case !errors.Is(err, errBroken), h.onto == "half" && is != "filling":
		t.Errorf("%s, and the journal says %q", what, is)
	case !dead && errors.Is(err, content.ErrHalfFilled) != has && h.onto != "whole":
		t.Errorf("%s, and there is a journal: %t", what, has)
	case !dead && h.onto == "" && !has && left(h) != "":
		t.Errorf("%s, and left is %s", what, left(h))
	}
	h.again()
	if before := h.onto; !dead || has || before == "" { // a kill after all is done leaves only the state to be saved
		putRight(h, before)
	}
	if left(h) != "" {
		t.Errorf("%s. Put right, it leaves %s", what, left(h))
	}
	return true
}

// The creator of a journal may end, or libvirtd may note that it has, after the next apply has found it: what it wrote until then counts.
func TestFill_InterruptedWhileInspected(t *testing.T) {
	h := newHost()
	f := filling(content.Spec{})
	f.End = func(context.Context) error { h.killed = true; return errBroken }
	if err := fill(t, h, f); !errors.Is(err, content.ErrHalfFilled) {
		t.Fatal(err)
	}
	d := h.again().domains["virtclaim-"+content.FillID(target())]
	d.active = true
	h.waited = func() { h.disconnect() }
	if err := fill(t, h, filling(content.Spec{})); err != nil || left(h) != "" {
		t.Errorf("the next apply: %v, and left is %s", err, left(h))
	}
}

// An apply that begins while another one of the same owner ends does not take that for an interruption, and the first one leaves the second one's
// journal alone.
func TestFill_TwoApplies(t *testing.T) {
	h := newHost()
	other := filling(content.Spec{})
	other.Content = "other content"
	f := filling(content.Spec{})
	f.End = func(context.Context) error {
		h.released = func() {
			if err := fill(t, h, other); !errors.Is(err, content.ErrNotBlank) {
				t.Errorf("the second one: %v", err)
			}
		}
		return nil
	}
	if err := fill(t, h, f); err != nil || h.onto != "whole" || left(h) != "" {
		t.Errorf("the first one: %v, the volume is %s, and left is %s", err, h.onto, left(h))
	}

	other.Overwrite = true
	other.End = func(context.Context) error { return errBroken }
	f.Overwrite = true
	f.End = func(context.Context) error {
		h.released = func() {
			if err := fill(t, h, other); !errors.Is(err, content.ErrHalfFilled) {
				t.Errorf("the second one: %v", err)
			}
		}
		return nil
	}
	err := fill(t, h, f)
	if is, _ := phase(t, h); is != "filling" {
		t.Errorf("the first one: %v, and the second one's journal says %q", err, is)
	}
}

// A volume that is not blank is left alone, also when the apply before it was killed while a pod was about to find that out.
func TestFill_NotBlank(t *testing.T) {
	h := newHost()
	h.onto = "other data"
	if err := fill(t, h, filling(content.Spec{})); !errors.Is(err, content.ErrNotBlank) || left(h) != "" {
		t.Errorf("got %v, and left is %s", err, left(h))
	}
	byPod := func(write func(overwrite bool) error) content.Fill {
		f := filling(content.Spec{})
		f.Source.Pool = ""
		f.Write = func(_ context.Context, begin func() error, overwrite bool) error {
			if err := write(overwrite); err != nil {
				return err
			}
			return errors.Join(begin(), errBroken)
		}
		return f
	}
	refuses := func(overwrite bool) error {
		if overwrite {
			t.Error("the pod is to overwrite it")
		}
		return content.ErrNotBlank
	}
	if err := fill(t, h, byPod(func(bool) error { h.killed = true; return errBroken })); !errors.Is(err, errBroken) {
		t.Errorf("killed: %v", err)
	}
	if err := fill(t, h.again(), filling(content.Spec{})); !errors.Is(err, content.ErrNotBlank) || h.onto != "other data" {
		t.Errorf("by the host: %v, and it has %q", err, h.onto)
	}
	if err := fill(t, h, byPod(refuses)); !errors.Is(err, content.ErrNotBlank) || errors.Is(err, content.ErrHalfFilled) || left(h) != "" {
		t.Errorf("by the pod: %v, and left is %s", err, left(h))
	}
	h.onto = "" // it is blank: what is there when the pod is killed later is its own
	err := fill(t, h, byPod(func(bool) error { return nil }))
	if is, _ := phase(t, h); !errors.Is(err, content.ErrHalfFilled) || is != "filling" {
		t.Errorf("killed while it writes: %v, and the journal says %q", err, is)
	}
	overwrites := false
	_ = fill(t, h.again(), byPod(func(overwrite bool) error { overwrites = overwrite; return errBroken }))
	if !overwrites {
		t.Error("the pod may not overwrite what it has written")
	}
}

// A pod that is to go on where a host was interrupted overwrites that.
func TestFill_PodAfterHost(t *testing.T) {
	h := newHost()
	f := filling(content.Spec{})
	f.End = func(context.Context) error { return errBroken }
	if err := fill(t, h, f); !errors.Is(err, content.ErrHalfFilled) {
		t.Fatal(err)
	}
	f = filling(content.Spec{})
	f.Source.Pool = ""
	f.Write = func(_ context.Context, begin func() error, overwrite bool) error {
		if !overwrite {
			t.Error("it is not to overwrite")
		}
		return begin()
	}
	if err := fill(t, h, f); err != nil || left(h) != "" {
		t.Errorf("got %v, and left is %s", err, left(h))
	}
}

// A volume that is in use is untouched.
func TestFill_Refused(t *testing.T) {
	h := newHost()
	f := filling(content.Spec{})
	used := errors.New("it is in use")
	f.Acquire = func(_ context.Context, name, id string) error {
		if d := h.domains[name]; d == nil || d.uuid != id || !d.active {
			t.Errorf("the journal is %+v", d)
		}
		return used
	}
	if err := fill(t, h, f); !errors.Is(err, used) || errors.Is(err, content.ErrHalfFilled) || h.onto != "" || left(h) != "" {
		t.Errorf("got %v, the volume is %q, and left is %s", err, h.onto, left(h))
	}
}

// Storage of one name on several servers is several volumes, each with its own journal; a logical unit is one, however it is reached and spelled.
func TestFillID(t *testing.T) {
	on := func(protocol, name, server string) volume.Volume {
		return volume.Volume{Images: []volume.Image{{Type: "network", Protocol: protocol, Name: name, Servers: []volume.Server{{Host: server}}}}}
	}
	device := func(hosts ...string) volume.Volume {
		return volume.Volume{Images: []volume.Image{{Type: "block", Name: "/dev/sdb", Hosts: hosts}}}
	}
	iqn := "iqn.2025-01.io.example:target"
	for name, c := range map[string]struct {
		a, b volume.Volume
		same bool
	}{
		"NBD on two servers":  {on("nbd", "data", "a"), on("nbd", "data", "b"), false},
		"NFS on two servers":  {on("nfs", "/vms/data.img", "a"), on("nfs", "/vms/data.img", "b"), false},
		"RBD in two clusters": {on("rbd", "pool/data", "a"), on("rbd", "pool/data", "b"), false},
		"RBD in one":          {on("rbd", "pool/data", "a"), on("rbd", "pool/data", "A"), true},
		"two portals":         {on("iscsi", iqn+"/1", "a"), on("iscsi", iqn+"/1", "b"), true},
		"two spellings":       {on("iscsi", iqn+"/1", "a"), on("iscsi", strings.ToUpper(iqn)+"/01", "a"), true},
		"two units":           {on("iscsi", iqn+"/1", "a"), on("iscsi", iqn+"/2", "a"), false},
		"a host more":         {device("a"), device("a", "b"), true},
	} {
		if same := content.FillID(c.a) == content.FillID(c.b); same != c.same {
			t.Errorf("%s: %t", name, same)
		}
	}
}
