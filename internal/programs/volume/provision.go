package volume

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/iscsi"
)

// provisioner makes volumes on demand, each in a folder of its own, and serves them as LUNs. It does one thing at a time.
type provisioner struct {
	folder string
	// image is the content of new volumes; without a reference, they are blank.
	image image.Container
	// images are what the container images begin with that a request may name.
	images     []string
	maxSize    int64
	maxVolumes int
	target     iscsi.Target
	log        func(string)
	// volumes are those that are there, by their keys.
	volumes map[string]*provisioned
	record  targetRecord
}

// targetRecord is what stays of a target when it has no volumes. Guards know an iSCSI disk by the name of its target and its number, so no
// other target may have the name, and no later volume the number.
type targetRecord struct {
	Name string `json:"name"`
	// NextLUN is the number of the next volume.
	NextLUN int `json:"nextLUN"`
}

// provisioned is a volume, as its record has it.
type provisioned struct {
	Key string `json:"key"`
	// Size is what was asked for in bytes; 0 if nothing was.
	Size int64  `json:"size"`
	LUN  uint16 `json:"lun"`
	// Serial is random, so that a later volume with this number is another disk.
	Serial string `json:"serial"`
	// Digest is that of the image.
	Digest string `json:"digest,omitempty"`
	content

	disk *iscsi.File
}

const (
	volumeRecord = "volume.json"
	targetFile   = "target.json"
	volumePrefix = "volume-"
	// A volume gets its name when it is complete, and loses it before anything of it is removed.
	newPrefix, removedPrefix = ".new-", ".removed-"
	// newSuffix is that of a record that is being written.
	newSuffix = ".new"
)

var (
	leftover   = regexp.MustCompile(`^\.(new|removed)-[0-9a-f]{32}$`)
	volumeName = regexp.MustCompile(`^` + volumePrefix + `[0-9a-f]{32}$`)
	ownName    = regexp.MustCompile(`^(target\.json(\.new)?|\.lock|lost\+found)$`)
)

// path is the folder of a volume. A key may have what the name of a file may not.
func (p *provisioner) path(prefix, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(p.folder, prefix+hex.EncodeToString(sum[:16]))
}

// load removes what is incomplete, and serves what is there. What is not its own is left alone, and links are not followed.
func (p *provisioner) load() error {
	p.volumes = map[string]*provisioned{}
	entries, err := os.ReadDir(p.folder)
	var others []string
	for _, e := range entries {
		path := filepath.Join(p.folder, e.Name())
		switch {
		case leftover.MatchString(e.Name()):
			err = errors.Join(err, os.RemoveAll(path))
		case volumeName.MatchString(e.Name()):
			if failed := p.resume(path); failed != nil {
				err = errors.Join(err, fmt.Errorf("%s can't be served: %w. Repair it, or move it out of %s; nothing in it was changed",
					path, failed, p.folder))
			}
		case !ownName.MatchString(e.Name()):
			others = append(others, strconv.Quote(e.Name()))
		}
	}
	if len(others) > 0 {
		p.log(fmt.Sprintf("leaves alone in %s: %.1000s", p.folder, strings.Join(others, ", ")))
	}
	return errors.Join(err, p.loadTarget())
}

// loadTarget reads the target's record, or begins one. A name that was configured is not recorded.
func (p *provisioner) loadTarget() error {
	text, err := readPlain(filepath.Join(p.folder, targetFile))
	switch {
	case errors.Is(err, os.ErrNotExist) && len(p.volumes) > 0:
		return fmt.Errorf("%s has volumes, but no %s. Put it back: machines know the volumes by the name in it", p.folder, targetFile)
	case errors.Is(err, os.ErrNotExist):
		p.record = targetRecord{Name: "iqn.2026-01.io.virtclaim:" + strings.ToLower(rand.Text())}
		err = p.saveTarget()
	case err == nil:
		err = cmp.Or(newer.JSON(text), json.Unmarshal(text, &p.record))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", targetFile, err)
	}
	p.target.Name = cmp.Or(p.target.Name, p.record.Name)
	return nil
}

func (p *provisioner) saveTarget() error {
	text, err := json.Marshal(p.record)
	if err != nil {
		return err
	}
	return save(filepath.Join(p.folder, targetFile), text)
}

// save has a record on the disk, in the place of a former one. A link is not followed.
func save(path string, text []byte) error {
	tmp := path + newSuffix
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	//nolint:gosec // for other users of the volume's group
	file, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o660)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(tmp, path), syncAll(filepath.Dir(path)))
}

// readPlain reads a plain file; a link is not followed.
func readPlain(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if err := checkPlain(file); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

func checkPlain(file *os.File) error {
	is, err := file.Stat()
	if err == nil && !is.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file", file.Name())
	}
	return err
}

func (p *provisioner) resume(path string) error {
	if is, err := os.Lstat(path); err != nil || !is.IsDir() {
		return cmp.Or(err, errors.New("it is no folder"))
	}
	text, err := readPlain(filepath.Join(path, volumeRecord))
	if err != nil {
		return err
	}
	v := &provisioned{}
	if err := cmp.Or(newer.JSON(text), json.Unmarshal(text, v)); err != nil {
		return fmt.Errorf("%s: %w", volumeRecord, err)
	}
	if p.path(volumePrefix, v.Key) != path || v.Serial == "" {
		return errors.New(volumeRecord + " is that of another folder")
	}
	return p.serve(v, path)
}

func (p *provisioner) serve(v *provisioned, path string) (err error) {
	if v.disk, err = iscsi.OpenFile(filepath.Join(path, diskImage), v.ReadOnly); err != nil {
		return err
	}
	if err := checkPlain(v.disk.File); err != nil {
		return errors.Join(err, v.disk.Close())
	}
	if v.disk.Size() < v.Size {
		return errors.Join(fmt.Errorf("%s has %d bytes, and had at least %d", diskImage, v.disk.Size(), v.Size), v.disk.Close())
	}
	if err := p.target.Add(v.LUN, v.lun()); err != nil {
		return errors.Join(err, v.disk.Close())
	}
	p.volumes[v.Key] = v
	return nil
}

// end takes the volume from initiators, and writes what they have written to the disk.
func (p *provisioner) end(v *provisioned) error {
	p.target.Remove(v.LUN)
	delete(p.volumes, v.Key)
	return errors.Join(v.disk.Sync(), v.disk.Close())
}

// put returns the volume of a key, which it makes if there is none and it may.
func (p *provisioner) put(ctx context.Context, key string, size int64, of content, mayMake bool) (v *provisioned, isNew bool, err error) {
	v = p.volumes[key]
	if v != nil || mayMake {
		err = p.allow(v, size, of)
	}
	if err != nil {
		return nil, false, err
	}
	switch {
	case v != nil && !mayMake && size > v.Size && inMiB(size) >= cmp.Or(v.Size, v.disk.Size()):
		return v, false, p.grow(v, size)
	case v == nil && !mayMake:
		return nil, false, refuseWith(http.StatusPreconditionFailed,
			"there is no volume of this key. Put it back, or ask without If-Match to make one")
	case v != nil && v.Size != size:
		return nil, false, refuseWith(http.StatusConflict,
			"the volume of this key has the size %d, and %d is asked for (bytes; 0 is none). Ask for the same, for more with If-Match to "+
				"have it grow, or use another key", v.Size, size)
	case v != nil:
		return v, false, nil
	case size == 0 && p.container(of).Reference == "":
		return nil, false, refuseWith(http.StatusBadRequest, "the parameter size is missing. Add it, as in /volume?size=10Gi")
	case size > p.maxSize:
		return nil, false, p.tooLarge()
	case len(p.volumes) >= p.maxVolumes:
		return nil, false, refuseWith(http.StatusInsufficientStorage, "there are %d volumes, and may be no more (-max-volumes). Delete one",
			len(p.volumes))
	}
	v = &provisioned{Key: key, Size: size, Serial: rand.Text(), content: of}
	if v.LUN, err = p.nextLUN(); err != nil {
		return nil, false, err
	}
	path := p.path(newPrefix, key)
	if err := p.create(ctx, v, path); err != nil {
		if p.volumes[key] != nil {
			err = errors.Join(err, p.end(v))
		}
		return nil, false, errors.Join(err, os.RemoveAll(path))
	}
	return v, true, nil
}

// nextLUN is a number that no volume has had, or none that is there once all were used.
func (p *provisioner) nextLUN() (uint16, error) {
	taken := map[int]bool{}
	for _, other := range p.volumes {
		taken[int(other.LUN)] = true
	}
	n := p.record.NextLUN % (iscsi.MaxLUN + 1)
	for taken[n] {
		n = (n + 1) % (iscsi.MaxLUN + 1)
	}
	p.record.NextLUN = n + 1
	return uint16(n), p.saveTarget()
}

// create makes a volume under another name, and gives it its own when all of it is on the disk.
func (p *provisioner) create(ctx context.Context, v *provisioned, path string) error {
	if err := os.Mkdir(path, 0o770); err != nil { //nolint:gosec // for other users of the volume's group
		return err
	}
	if err := p.fill(ctx, v, path); err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := errors.Join(syncAll(filepath.Join(path, diskImage)), save(filepath.Join(path, volumeRecord), text)); err != nil {
		return err
	}
	if err := p.serve(v, path); err != nil {
		return err
	}
	if err := os.Rename(path, p.path(volumePrefix, v.Key)); err != nil {
		return err
	}
	return syncAll(p.folder)
}

// fill makes the disk of a volume.
func (p *provisioner) fill(ctx context.Context, v *provisioned, path string) error {
	size := inMiB(v.Size)
	disk := filepath.Join(path, diskImage)
	if err := os.WriteFile(disk, nil, 0o660); err != nil { //nolint:gosec // for other users of the volume's group
		return err
	}
	from := p.container(v.content)
	if err := os.Truncate(disk, size); err != nil || from.Reference == "" {
		return err
	}
	if v.RootFileSystem != "" {
		return p.fillRoot(ctx, v, disk, size)
	}
	f, err := Claim{Path: path, Scratch: path}.copyImage(ctx, from, p.log)
	if err != nil {
		return err
	}
	if size != 0 && f.Capacity > size {
		return refuseWith(http.StatusBadRequest, "the image has %d bytes, and a volume of %d is asked for. Ask for more, or for no size",
			f.Capacity, size)
	}
	v.Digest = f.Digest
	return removeRecord(path)
}

// remove removes the volume of a key, and what a former try has left.
func (p *provisioner) remove(key string) error {
	path, removed := p.path(volumePrefix, key), p.path(removedPrefix, key)
	if err := os.RemoveAll(removed); err != nil {
		return err
	}
	if v := p.volumes[key]; v != nil {
		p.target.Remove(v.LUN)
		if err := os.Rename(path, removed); err != nil {
			return errors.Join(err, p.target.Add(v.LUN, v.lun()))
		}
		if err := errors.Join(p.end(v), syncAll(p.folder)); err != nil {
			return err
		}
	}
	return os.RemoveAll(removed)
}

// syncAll has files and folders on the disk.
func syncAll(paths ...string) error {
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lockTime is how long the server before this one may take to end; less in tests.
var lockTime = 30 * time.Second

// lock has no other server use the folder, until the file is closed.
func (p *provisioner) lock(ctx context.Context) (*volume, error) {
	for end := time.Now().Add(lockTime); ; {
		file, err := openFile(filepath.Join(p.folder, ".lock"))
		if !errors.Is(err, ErrBusy) || ctx.Err() != nil || time.Now().After(end) {
			return file, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

var units = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}

// bytesOf is a quantity of Kubernetes in bytes.
func bytesOf(text string) (int64, error) {
	unit := strings.TrimLeft(text, ".0123456789")
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, unit), 64)
	n = math.Round(n * units[unit])
	if err != nil || n < 1 || n > image.MaxCapacity {
		return 0, fmt.Errorf("%.40q is no size up to 64Ti. Write for example 512Mi or 10Gi", text)
	}
	return int64(n), nil
}
