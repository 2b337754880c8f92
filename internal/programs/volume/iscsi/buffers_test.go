package iscsi

import (
	"bytes"
	"net"
	"runtime"
	"slices"
	"testing"
)

// counted is a disk that says when it is read.
type counted struct {
	*memory
	reads chan struct{}
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	select {
	case c.reads <- struct{}{}:
	default:
	}
	return c.memory.ReadAt(p, off)
}

// held is the memory of the process, without garbage.
func held() uint64 {
	runtime.GC()
	runtime.GC() // the first one leaves what a sync.Pool has
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// Initiators that read none of their answers, and those that send no data of their writes, share a few buffers of the target, and delay
// no other session.
func TestTarget_SessionsThatStallShareBuffers(t *testing.T) {
	const sessions = 600
	target, disk := newTarget(t)
	target.MaxSessions = sessions + 1
	reads := make(chan struct{}, sessions)
	if err := target.Add(1, LUN{Disk: counted{disk, reads}}); err != nil {
		t.Fatal(err)
	}
	var stalled []*initiator
	for n := range sessions {
		here, there := net.Pipe() // has no buffer
		go func() { _ = target.serve(there) }()
		t.Cleanup(func() { _ = here.Close() })
		i := &initiator{T: t, conn: here, isid: byte(n), stage: stageOperational, commandSN: 7, tag: 100}
		i.login(stageFull, append(slices.Clone(names[1:]), pair{"InitiatorName", "iqn.2026-01.io.virtclaim:" + string(rune('a'+n/256))},
			pair{"MaxRecvDataSegmentLength", "131072"})...)
		stalled = append(stalled, i)
	}
	idle := held()
	for n, i := range stalled {
		var b []byte
		for k := range window {
			b = append(b, requested(opCommand, flagFinal|flagRead, nil, func(b []byte) {
				be.PutUint32(b[16:], uint32(1000+k))
				be.PutUint32(b[24:], i.commandSN)
				fillCommand(b, 1, cdb10(0x28, 0, 2048), 2048*BlockSize)
			})...)
			i.commandSN++
		}
		if n%4 == 0 { // data of a write does not come
			b = append(b, requested(opCommand|0x40, flagFinal|flagWrite, nil, func(b []byte) {
				be.PutUint32(b[4:], segmentSize)
				fillCommand(b, 0, cdb10(0x2a, 0, 256), segmentSize)
			})...)
		}
		if _, err := i.conn.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	for range sessions {
		<-reads
	}
	well := loggedIn(t, serve(t, target))
	if r := well.command(0, cdb10(0x28, 0, 2048), 2048*BlockSize, nil, 0); r.status != 0 || !bytes.Equal(r.data, disk.b) {
		t.Errorf("status %d, %d bytes", r.status, len(r.data))
	}
	if more := int64(held()-idle) >> 20; more > 64 {
		t.Errorf("the sessions hold %d MiB", more)
	}
	runtime.KeepAlive(stalled)
}

// Without a large buffer, data comes and goes in small parts, and all of it.
func TestTarget_ReadsAndWritesWithoutLargeBuffers(t *testing.T) {
	for _, immediate := range []int{0, 777, 60_001, 64 << 10} {
		target, disk := newTarget(t)
		i := loggedIn(t, serve(t, target), pair{"MaxRecvDataSegmentLength", "131072"})
		target.large.Store(maxLarge)
		out := pattern(512 << 10)[512<<10-300*BlockSize:]
		want := append(append(bytes.Clone(disk.b[:5*BlockSize]), out...), disk.b[305*BlockSize:]...)
		i.part = 100_001
		if r := i.command(0, cdb10(0x2a, 5, 300), len(out), out, immediate); r.status != 0 || !bytes.Equal(disk.b, want) {
			t.Errorf("%d bytes of immediate data: status %d, sense %v", immediate, r.status, r.sense)
		}
		r := i.command(0, cdb10(0x28, 0, 2048), 2048*BlockSize, nil, 0)
		if r.status != 0 || !bytes.Equal(r.data, want) || slices.Max(i.segments) != loginSegment {
			t.Errorf("status %d, %d bytes, parts of %d", r.status, len(r.data), slices.Max(i.segments))
		}
		if n := target.large.Load(); n != maxLarge {
			t.Errorf("%d large buffers", n)
		}
	}
}

// What was taken is given back, whatever became of the session.
func TestTarget_GivesBuffersBack(t *testing.T) {
	target, _ := newTarget(t)
	i := loggedIn(t, serve(t, target))
	i.part = segmentSize
	out := pattern(256 << 10)
	i.command(0, cdb10(0x2a, 5, 512), len(out), out, 64<<10)
	i.command(0, cdb10(0x28, 0, 512), len(out), nil, 0)
	i.ask(opLogout, flagFinal, nil, nil)
	i.ends()
	if n := target.large.Load(); n != 0 {
		t.Errorf("%d large buffers are in use after the logout", n)
	}
}
