//go:build acc

package lab

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

func TestAccTap_RefusesCall(t *testing.T) {
	l := sharedLab(t)
	tap, err := NewTap(t.Context(), l.Hosts["host-a"], l.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tap.Close() }()
	tap.Arm(Fault{Call: CallSecretDefine, Nth: 1, Refuse: true})
	secret := writeFile(t, "secret.xml", "<secret ephemeral='no' private='no'/>")
	// The second command of the same connection is answered.
	out, err := exec.CommandContext(t.Context(), "virsh", "-c", tap.URI, "secret-define "+secret+"; secret-list").CombinedOutput()
	if err != nil || !tap.Fired() || !strings.Contains(string(out), "unknown procedure") {
		t.Errorf("virsh says %v, fired is %t: %s", err, tap.Fired(), out)
	}
}

// TestAccTap_UploadFaultsReachClients has virsh upload a file that is half a hole.
func TestAccTap_UploadFaultsReachClients(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts["host-a"]
	tap, err := NewTap(t.Context(), h, l.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tap.Close() }()
	const size = 8 << 20
	file := writeFile(t, "disk.img", strings.Repeat("content ", size/16))
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	virsh(t, h, "vol-create-as", "ssd", "upload", strconv.Itoa(size), "--allocation", "0")
	upload := func() error {
		return exec.CommandContext(t.Context(), "virsh", "-c", tap.URI, "vol-upload", "--sparse", "--pool", "ssd", "upload", file).Run()
	}

	tap.Arm(Fault{Call: CallVolumeUpload, Nth: 1, AtByte: 1 << 20})
	if err := upload(); err == nil || !tap.Fired() {
		t.Errorf("cut: virsh says %v, fired is %t", err, tap.Fired())
	}
	if got := tap.Uploaded(); got < 1<<20 || got > 3<<19 {
		t.Errorf("cut: %d bytes have passed", got)
	}
	tap.Arm(Fault{Call: CallVolumeUpload, Nth: 1, AtByte: 1 << 20, Kill: true})
	var ended *exec.ExitError
	if err := upload(); !errors.As(err, &ended) || ended.String() != "signal: killed" {
		t.Errorf("kill: virsh ends with %v", err)
	}
	before := tap.Uploaded()
	if err := upload(); err != nil {
		t.Error(err)
	}
	if got := tap.Uploaded() - before; got < size/2 || got > size/2+1<<16 {
		t.Errorf("%d bytes have passed, want those that are no hole", got)
	}
	if got := tap.Calls(CallVolumeUpload); got != 3 {
		t.Errorf("it counts %d uploads, want 3", got)
	}
	virsh(t, h, "vol-delete", "--pool", "ssd", "upload")
}
