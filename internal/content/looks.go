package content

import (
	"context"
	"sync"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// lookAge is how long a look at a file counts, where it counts in another operation at all.
const lookAge = 5 * time.Second

// Looks are the files of hosts as they were seen. A look takes many calls, so each file is looked at once in an operation, and once in some seconds by
// those that only describe a master: a machine that starts looks again. The zero value is ready to use.
type Looks struct{ files sync.Map }

type look struct {
	head  int
	began time.Time
	file  func() (host.File, error)
}

// File is that of h, or what an earlier look with as many bytes of the head has shown. key distinguishes hosts.
func (l *Looks) File(ctx context.Context, h interface {
	File(ctx context.Context, path string, head int) (host.File, error)
}, key, path string, head int,
) (host.File, error) {
	for key += " " + path; ; {
		own := &look{head, time.Now(), sync.OnceValues(func() (host.File, error) { return h.File(ctx, path, head) })}
		seen, _ := l.files.LoadOrStore(key, own)
		if s := seen.(*look); s.head >= head && time.Since(s.began) < lookAge {
			file, err := s.file()
			if err != nil {
				l.files.CompareAndDelete(key, seen)
			}
			return file, err
		}
		l.files.CompareAndDelete(key, seen)
	}
}

// Forget removes all looks, because files were written to.
func (l *Looks) Forget() { l.files.Clear() }

// On is a host with these looks.
func (l *Looks) On(h *host.Host) Looked { return Looked{Host: h, looks: l} }

// Fresh is a host whose files are looked at now, for later looks.
func (l *Looks) Fresh(h *host.Host) Looked { return Looked{h, l, true} }

// Looked is a host of which each file is looked at once.
type Looked struct {
	*host.Host
	looks *Looks
	fresh bool
}

// File is Looks.File.
func (h Looked) File(ctx context.Context, path string, head int) (host.File, error) {
	if h.fresh {
		h.looks.files.Delete(h.Key + " " + path)
	}
	return h.looks.File(ctx, h.Host, h.Key, path, head)
}
