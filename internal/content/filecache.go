package content

import (
	"context"
	"sync"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// cacheTime is how long an inspection of a file counts, where it counts in another operation at all.
const cacheTime = 5 * time.Second

// FileCache caches what hosts tell of their files. An inspection takes many calls, so each file is inspected once in an operation, and once
// in some seconds by operations that only describe a master: one that starts a machine inspects again. The zero value is ready to use.
type FileCache struct{ files sync.Map }

type cachedFile struct {
	head  int
	began time.Time
	file  func() (host.File, error)
}

// File is that of h, or what an earlier inspection with as many bytes of the head has shown. key distinguishes hosts.
func (c *FileCache) File(ctx context.Context, h interface {
	File(ctx context.Context, path string, head int) (host.File, error)
}, key, path string, head int,
) (host.File, error) {
	for key += " " + path; ; {
		own := &cachedFile{head, time.Now(), sync.OnceValues(func() (host.File, error) { return h.File(ctx, path, head) })}
		seen, _ := c.files.LoadOrStore(key, own)
		if s := seen.(*cachedFile); s.head >= head && time.Since(s.began) < cacheTime {
			file, err := s.file()
			if err != nil {
				c.files.CompareAndDelete(key, seen)
			}
			return file, err
		}
		c.files.CompareAndDelete(key, seen)
	}
}

// Forget removes all inspections, because files were written to.
func (c *FileCache) Forget() { c.files.Clear() }

// On is a host with these inspections.
func (c *FileCache) On(h *host.Host) CachedHost { return CachedHost{Host: h, cache: c} }

// Fresh is a host whose files are inspected now, for later inspections.
func (c *FileCache) Fresh(h *host.Host) CachedHost { return CachedHost{h, c, true} }

// CachedHost is a host of which each file is inspected once.
type CachedHost struct {
	*host.Host
	cache *FileCache
	fresh bool
}

// File is FileCache.File.
func (h CachedHost) File(ctx context.Context, path string, head int) (host.File, error) {
	if h.fresh {
		h.cache.files.Delete(h.Key + " " + path)
	}
	return h.cache.File(ctx, h.Host, h.Key, path, head)
}
