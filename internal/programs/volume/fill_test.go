package volume

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// inMemory is a folder in which fsync costs nothing.
func inMemory(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "volume-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func TestFill_Raw(t *testing.T) {
	for name, content := range map[string][]byte{
		"some clusters":    disk(40),
		"less than a head": disk(1)[:700],
		"one byte":         {7},
		"all zeros":        make([]byte, 3*cluster),
		"an odd length":    disk(4)[:3*cluster+777],
	} {
		t.Run(name, func(t *testing.T) {
			got, f, err := fillFile(t, Claim{}, bytes.NewReader(content), int64(len(content)))
			if err != nil || !bytes.Equal(got, padTo(content, sector)) || f.Capacity != int64(len(content)) || f.Format != "raw" {
				t.Errorf("%v, %+v, %d bytes, equal: %v", err, f, len(got), bytes.Equal(got, padTo(content, sector)))
			}
		})
	}
}

// What is blank in the image is a hole in the file.
func TestFill_Sparse(t *testing.T) {
	folder := inMemory(t)
	content := make([]byte, 64<<20)
	content[0] = 1
	if _, _, err := fillFile(t, Claim{Path: folder}, bytes.NewReader(content), -1); err != nil {
		t.Fatal(err)
	}
	var is unix.Stat_t
	if err := unix.Stat(filepath.Join(folder, diskImage), &is); err != nil || is.Size != 64<<20 || is.Blocks*sector > 1<<20 {
		t.Errorf("%d bytes, of which %d are allocated; %v", is.Size, is.Blocks*sector, err)
	}
}

// A try that ended in the middle leaves the marker, and the next one fills the volume, also with a smaller image. A file that was there keeps its
// length, if that is larger.
func TestFill_Again(t *testing.T) {
	broken := errors.New("the connection was cut")
	for before, after := range map[int64]int{0: 8 * cluster, 1 << 20: 1 << 20} {
		folder := inMemory(t)
		if before > 0 {
			if err := os.WriteFile(filepath.Join(folder, diskImage), make([]byte, before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		half := io.MultiReader(bytes.NewReader(disk(20)), errReader{broken})
		got, _, err := fillFile(t, Claim{Path: folder}, half, 40*cluster)
		if !errors.Is(err, broken) {
			t.Fatalf("error %v", err)
		}
		if _, half := marked(got); !half || !isZero(got[sector:headSize]) {
			t.Errorf("the volume begins with %q", got[:64])
		}
		content := disk(8)
		got, _, err = fillFile(t, Claim{Path: folder}, bytes.NewReader(content), -1)
		if err != nil || len(got) != after || !bytes.Equal(got[:len(content)], content) || !isZero(got[len(content):]) {
			t.Errorf("%v, %d bytes", err, len(got))
		}
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// A volume with content is left as it is, wherever its content begins.
func TestFill_HasContent(t *testing.T) {
	for _, at := range []int64{0, 600_000, 9<<20 + 5} {
		folder := inMemory(t)
		was := make([]byte, 10<<20)
		was[at] = 1
		if err := os.WriteFile(filepath.Join(folder, diskImage), was, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := fillFile(t, Claim{Path: folder}, bytes.NewReader(disk(3)), -1); !errors.Is(err, ErrFilled) || !bytes.Equal(got, was) {
			t.Errorf("%d: %v, unchanged: %v", at, err, bytes.Equal(got, was))
		}
	}
}

// What is overwritten is marked as incomplete until the image is there, and nothing of it is left then. What it is, is in the error otherwise.
func TestFill_Overwrites(t *testing.T) {
	folder := inMemory(t)
	was := bytes.Repeat([]byte{0xff}, 10<<20)
	copy(was[512:], "EFI PART")
	if err := os.WriteFile(filepath.Join(folder, diskImage), was, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeRecord(folder, podwire.Filled{Digest: "sha256:old"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fillFile(t, Claim{Path: folder}, bytes.NewReader(disk(3)), -1); !errors.Is(err, ErrFilled) ||
		!strings.Contains(err.Error(), "disk.img has a GPT partition table") {
		t.Errorf("error %v", err)
	}
	broken := errors.New("the connection was cut")
	half := io.MultiReader(bytes.NewReader(disk(3)), errReader{broken})
	got, _, err := fillFile(t, Claim{Path: folder, Overwrite: true}, half, -1)
	if _, incomplete := marked(got); !errors.Is(err, broken) || !incomplete {
		t.Errorf("%v, it begins with %q", err, got[:40])
	}
	if _, ok := readRecord(folder); ok {
		t.Error("the record of the former content is left")
	}
	content := disk(4)
	got, _, err = fillFile(t, Claim{Path: folder, Overwrite: true}, bytes.NewReader(content), -1)
	if err != nil || !bytes.Equal(got, padTo(content, len(was))) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
}

func TestFill_Refused(t *testing.T) {
	folder := inMemory(t)
	for name, is := range map[string]struct {
		claim  Claim
		body   io.Reader
		length int64
		want   error
		text   string
	}{
		"more than there is room for": {Claim{Path: folder}, bytes.NewReader(disk(1)), 1 << 60, ErrTooLarge, "there is room for"},
		"nothing":                     {Claim{Path: folder}, strings.NewReader(""), 0, image.ErrUntrusted, "empty"},
		"another format":              {Claim{Path: folder}, strings.NewReader("KDMV" + strings.Repeat("x", 600)), -1, image.ErrUntrusted, "VMDK"},
		"no claim":                    {Claim{Path: filepath.Join(folder, "missing")}, bytes.NewReader(disk(1)), -1, os.ErrNotExist, "mounted there"},
		"a device of characters":      {Claim{Path: "/dev/null"}, bytes.NewReader(disk(1)), -1, nil, "neither a folder nor a block device"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := is.claim.fill(t.Context(), is.body, is.length, nil, noDigest)
			if err == nil || is.want != nil && !errors.Is(err, is.want) || !strings.Contains(err.Error(), is.text) {
				t.Errorf("error %v", err)
			}
			if content, err := os.ReadFile(filepath.Join(folder, diskImage)); err == nil && len(content) > 0 {
				t.Errorf("%d bytes were written", len(content))
			}
		})
	}
}

// A file that QEMU has open has its locks, which are on some of its bytes.
func TestFill_InUse(t *testing.T) {
	folder := inMemory(t)
	file, err := os.Create(filepath.Join(folder, diskImage))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 100, Len: 1}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fillFile(t, Claim{Path: folder}, bytes.NewReader(disk(1)), -1); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v", err)
	}
}

// A link could lead out of the claim.
func TestFill_Link(t *testing.T) {
	folder, other := inMemory(t), filepath.Join(inMemory(t), "other")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(folder, diskImage)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fillFile(t, Claim{Path: folder}, bytes.NewReader(disk(1)), -1); err == nil {
		t.Error("the file behind the link was filled")
	}
}

func TestRun(t *testing.T) {
	for text, want := range map[string]struct {
		n     int
		blank bool
	}{"": {0, false}, "d": {1, false}, "z": {1, true}, "ddz": {2, false}, "zzzd": {3, true}} {
		p := []byte{}
		for _, c := range text {
			part := make([]byte, block)
			if c == 'd' {
				part[block-1] = 1
			}
			p = append(p, part...)
		}
		if n, blank := run(p); n != want.n*block || blank != want.blank {
			t.Errorf("%q: %d, %v", text, n/block, blank)
		}
	}
}

func noDigest() (string, error) { return "", nil }

// Who uses the filesystem may have put links, pipes and folders where the record is written.
func TestRecord_BesideThingsOfOthers(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(diskImage, path) },
		"pipe":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, file := range []string{recordFile, "." + recordFile} {
			folder, content := inMemory(t), disk(3)
			if err := create(filepath.Join(folder, file)); err != nil {
				t.Fatal(err)
			}
			if _, ok := readRecord(folder); ok {
				t.Errorf("%s %s is read", name, file)
			}
			got, _, err := fillFile(t, Claim{Path: folder}, bytes.NewReader(content), -1)
			if _, ok := readRecord(folder); err != nil || !ok || !bytes.Equal(got, content) {
				t.Errorf("%s %s: %v, recorded: %v", name, file, err, ok)
			}
		}
	}
}

// An image that must not be taken is not recorded either.
func TestFill_OtherDigest(t *testing.T) {
	folder := inMemory(t)
	_, err := (Claim{Path: folder}).fill(t.Context(), bytes.NewReader(disk(3)), -1, nil, func() (string, error) { return "", image.ErrUntrusted })
	_, isRecorded := readRecord(folder)
	if is, lookErr := (Claim{Path: folder}).inspect(); !errors.Is(err, image.ErrUntrusted) || isRecorded || is.State != podwire.Incomplete || lookErr != nil {
		t.Errorf("%v, recorded: %v, %s, %v", err, isRecorded, is.State, lookErr)
	}
}
