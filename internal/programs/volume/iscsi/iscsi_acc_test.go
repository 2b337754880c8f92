//go:build acc

package iscsi

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// withFiles has a writable LUN 1 and a read-only LUN 2 of 1 GiB.
func withFiles(t *testing.T, target *Target) (address string) {
	t.Helper()
	target.Log = func(err error) { t.Log(err) }
	for _, number := range []uint16{1, 2} {
		path := filepath.Join(t.TempDir(), "disk.img")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 1<<30); err != nil {
			t.Fatal(err)
		}
		disk, err := OpenFile(path, number == 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = disk.Close() })
		if err := target.Add(number, LUN{Disk: disk, ReadOnly: number == 2}); err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, target)
}

const notImplemented = " is not implemented."

// skippedByAll is what each run asks for first.
var skippedByAll = []string{"PERSISTENT RESERVE IN" + notImplemented, "REPORT_SUPPORTED_OPCODES" + notImplemented}

// conformance are the families of libiscsi's tests which the target passes, and what of them needs what it has not.
var conformance = []struct {
	family  string
	skipped []string
	// readOnly is whether the family also passes where nothing may be written.
	readOnly bool
}{
	{family: "Read6", readOnly: true},
	{family: "Read10", readOnly: true},
	{family: "Read12", readOnly: true},
	{family: "Read16", readOnly: true},
	{family: "ReadCapacity10", readOnly: true},
	{family: "ReadCapacity16", readOnly: true},
	{family: "Inquiry", readOnly: true},
	{family: "Mandatory", readOnly: true},
	{family: "ModeSense6", readOnly: true},
	{family: "TestUnitReady", readOnly: true},
	{family: "ReadOnly", readOnly: true, skipped: []string{
		"Logical unit is not write-protected. Skipping test.", // as LUN 1
		"COMPAREANDWRITE" + notImplemented, "ORWRITE" + notImplemented,
		"WRITEVERIFY10" + notImplemented, "WRITEVERIFY12" + notImplemented, "WRITEVERIFY16" + notImplemented,
	}},
	{family: "GetLBAStatus.Simple", readOnly: true, skipped: []string{"Logical unit does not support UNMAP."}},
	// Not GetLBAStatus.UnmapSingle, which asks for a block in a physical one and wants that one's end in the answer.
	{family: "GetLBAStatus.BeyondEol", readOnly: true},
	// There are no media to eject.
	{family: "StartStopUnit", skipped: []string{"Media is not removable."}},
	{family: "PreventAllow", skipped: []string{"Logical unit is not removable. Skipping test."}},
	{family: "Write10"},
	{family: "Write12"},
	{family: "Write16"},
	// By WSNZ: no number of blocks would be all that follow.
	{family: "WriteSame10", skipped: []string{"WRITESAME10 does not support 0-blocks."}},
	{family: "WriteSame16", skipped: []string{"WRITESAME16 does not support 0-blocks."}},
	{family: "Unmap"},
	{family: "iSCSIcmdsn"},
	{family: "iSCSIdatasn"},
	{family: "iSCSIResiduals", skipped: []string{
		"WRITEVERIFY10" + notImplemented, "WRITEVERIFY12" + notImplemented, "WRITEVERIFY16" + notImplemented,
	}},
	{family: "iSCSITMF"},
}

func TestAccTarget_Conformance(t *testing.T) {
	url := "iscsi://" + withFiles(t, &Target{Name: targetName}) + "/" + targetName
	for _, c := range conformance {
		t.Run(c.family, func(t *testing.T) {
			conforms(t, c.family, url+"/1", c.skipped)
			if c.readOnly {
				conforms(t, c.family, url+"/2", c.skipped)
			}
		})
	}
}

var (
	skippedTest = regexp.MustCompile(`\[SKIPPED\] (.*)`)
	// summary has how many tests there are, how many ran, passed and failed.
	summary = regexp.MustCompile(`(?m)^ +tests +(\d+) +(\d+) +(\d+) +0 +0$`)
)

func conforms(t *testing.T, family, url string, skipped []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "iscsi-test-cu", "--dataloss", "--fail", "--verbose", "--test=ALL."+family, url).CombinedOutput()
	all := summary.FindSubmatch(out)
	if err != nil || all == nil || string(all[1]) != string(all[3]) || string(all[1]) == "0" {
		t.Errorf("%v\n%s", err, out[:min(len(out), 4000)])
	}
	for _, found := range skippedTest.FindAllSubmatch(out, -1) {
		if why := string(found[1]); !slices.Contains(skipped, why) && !slices.Contains(skippedByAll, why) {
			t.Errorf("%s skips %q", url, why)
		}
	}
}

// run is the output of a program, which fails if it should.
func run(t *testing.T, fails bool, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if (err != nil) != fails {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestAccTarget_QEMUReadsAndWrites(t *testing.T) {
	address := withFiles(t, &Target{Name: targetName, CHAP: &Credentials{"user", "secret-of-initiators"}, Mutual: &Credentials{"back", "secret-of-the-target"}})
	disk := func(lun string) string {
		return "driver=raw,file.driver=iscsi,file.transport=tcp,file.portal=" + address + ",file.target=" + targetName + ",file.user=user,file.password-secret=chap,file.lun=" + lun
	}
	secret := "secret,id=chap,data=secret-of-initiators"
	image := filepath.Join(t.TempDir(), "copy.img")
	run(t, false, "qemu-io", "--object", secret, "--image-opts",
		"-c", "write -P 7 1M 40M", "-c", "write -P 8 3584 4k", "-c", "aio_write -P 9 50M 4M", "-c", "aio_write -P 10 60M 1M", "-c", "aio_flush",
		"-c", "write -z -u 2M 2M", "-c", "discard 5M 1M", "-c", "flush",
		"-c", "read -P 7 1M 1M", "-c", "read -P 0 2M 2M", "-c", "read -P 0 5M 1M", "-c", "read -P 7 6M 35M", "-c", "read -P 8 3584 4k",
		"-c", "read -P 9 50M 4M", "-c", "read -P 10 60M 1M", disk("1"))
	run(t, false, "qemu-img", "convert", "--object", secret, "--image-opts", "-O", "raw", disk("1"), image)
	run(t, false, "qemu-img", "compare", "--object", secret, "--image-opts", disk("1"), "driver=raw,file.driver=file,file.filename="+image)
	run(t, false, "qemu-io", "-r", "--object", secret, "--image-opts", "-c", "read -P 0 0 100M", disk("2"))
	if out := run(t, true, "qemu-io", "--object", secret, "--image-opts", "-c", "read 0 1M", disk("2")); !regexp.MustCompile("write protected").MatchString(out) {
		t.Error(out)
	}
	run(t, true, "qemu-img", "info", "--object", "secret,id=chap,data=guess", "--image-opts", disk("1"))

	url := "iscsi://user%secret-of-initiators@" + address + "/" + targetName + "/1?target_user=back&target_password="
	run(t, false, "iscsi-inq", url+"secret-of-the-target")
	run(t, true, "iscsi-inq", url+"guess")
}
