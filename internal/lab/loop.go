package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// holdLoop creates a loop device and holds it open. Detaching an open device makes the kernel detach it at the last close: so it is removed
// when this process has ended and QEMU has closed it, even if no process is left for a cleanup. Its arguments are the backing file and the
// file for the device's path.
const holdLoop = `bash -c 'set -eu
device=$(losetup --find --show "$1")
exec <"$device"
losetup --detach "$device"
echo "$device" >"$2".part
mv "$2".part "$2"
exec sleep infinity' hold-loop %s %s`

// BlockDevice is a block device of the machine, which all hosts see.
type BlockDevice struct {
	// Path is /dev/loopN.
	Path string
	// Backing is the file that has the device's content once it is flushed.
	Backing string
	// Size is in bytes.
	Size int64
}

// loops holds the lab's loop devices.
type loops struct {
	dir     string
	sandbox *sandbox

	mu      sync.Mutex
	last    int
	holders map[string]*daemon // by BlockDevice.Path
}

func (l *Lab) startLoops(ctx context.Context) (*loops, error) {
	dir, err := l.serverFolder("loops")
	if err != nil {
		return nil, err
	}
	s := &loops{dir: dir, holders: map[string]*daemon{}}
	s.sandbox, err = startSandbox(ctx, l.Dir, "loops", dir)
	return s, err
}

// AddBlockDevice creates a block device that starts with content; the rest is zeros.
func (l *Lab) AddBlockDevice(ctx context.Context, size int64, content []byte) (BlockDevice, error) {
	s, err := l.loops.get(ctx, l.startLoops)
	if err != nil {
		return BlockDevice{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	name := strconv.Itoa(s.last)
	device := BlockDevice{Backing: filepath.Join(s.dir, name+".img"), Size: size}
	if err := makeImage(device.Backing, size, content); err != nil {
		return BlockDevice{}, err
	}
	path := filepath.Join(s.dir, name+".device")
	holder := startDaemon(s.sandbox, s.dir, name, fmt.Sprintf(holdLoop, quote(device.Backing), quote(path)))
	err = holder.await(ctx, func(context.Context) error {
		text, err := os.ReadFile(path)
		device.Path = strings.TrimSpace(string(text))
		return err
	})
	if err != nil {
		return BlockDevice{}, fmt.Errorf("make a block device: %w", err)
	}
	s.holders[device.Path] = holder
	return device, nil
}

// GrowBlockDevice enlarges a device to a size in bytes, as extending a logical volume does.
func (l *Lab) GrowBlockDevice(ctx context.Context, device BlockDevice, size int64) error {
	s, err := l.loops.get(ctx, l.startLoops)
	if err != nil {
		return err
	}
	return s.sandbox.run(ctx,
		fmt.Sprintf("truncate --size %d %s && losetup --set-capacity %s", size, quote(device.Backing), quote(device.Path)))
}

// RemoveBlockDevice detaches a device and removes its backing file. It is an error if a process has the device open.
func (l *Lab) RemoveBlockDevice(ctx context.Context, device BlockDevice) error {
	s, err := l.loops.get(ctx, l.startLoops)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder := s.holders[device.Path]; holder != nil {
		if err := holder.end(ctx, "KILL"); err != nil {
			return err
		}
		delete(s.holders, device.Path)
	}
	if err := device.awaitDetached(ctx); err != nil {
		return err
	}
	return os.Remove(device.Backing)
}

// awaitDetached waits until the kernel has detached the device, which happens after the holder's end.
func (d BlockDevice) awaitDetached(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, closeTime, errors.New("a process has it open"))
	defer cancel()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for d.attached() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not go: %w", d.Path, context.Cause(ctx))
		}
	}
	return nil
}

// attached reports whether the device has its backing file.
func (d BlockDevice) attached() bool {
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(d.Path), "loop", "backing_file"))
	return err == nil && strings.TrimSpace(string(text)) == d.Backing
}

func (s *loops) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.sandbox.close(ctx)
}
