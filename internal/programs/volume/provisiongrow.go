package volume

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
)

// grow makes a volume larger, also while initiators have it. The file is longer before the record says so: what is interrupted is finished
// by the next try, and served until then.
func (p *provisioner) grow(v *provisioned, size int64) error {
	if size > p.maxSize {
		return p.tooLarge()
	}
	err := v.disk.Extend(inMiB(size), func() error {
		is := *v
		is.Size = size
		text, err := json.Marshal(is)
		if err != nil {
			return err
		}
		return save(filepath.Join(p.path(volumePrefix, v.Key), volumeRecord), text)
	})
	if err == nil {
		v.Size = size
		p.target.Grown(v.LUN)
		p.log(fmt.Sprintf("LUN %d has grown to %d bytes", v.LUN, v.disk.Size()))
	}
	return err
}

func (p *provisioner) tooLarge() error {
	return refuseWith(http.StatusRequestEntityTooLarge, "the size may be up to %d bytes (-max-size). Ask for less", p.maxSize)
}

// inMiB is a size in whole mebibytes.
func inMiB(size int64) int64 { return (size + mebiByte - 1) / mebiByte * mebiByte }
