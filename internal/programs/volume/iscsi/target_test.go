package iscsi

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// newTarget has a writable LUN 0 and a read-only LUN 300 of 1 MiB.
func newTarget(t testing.TB) (*Target, *memory) {
	t.Helper()
	return targetOf(t, 1<<20)
}

func targetOf(t testing.TB, size int) (*Target, *memory) {
	t.Helper()
	target, disk := &Target{Name: targetName}, &memory{b: pattern(size)}
	for number, lun := range map[uint16]LUN{0: {Disk: disk}, 300: {Disk: &memory{b: pattern(size)}, ReadOnly: true}} {
		if err := target.Add(number, lun); err != nil {
			t.Fatal(err)
		}
	}
	return target, disk
}

const readOnlyLUN = 0x4000 | 300

func TestTarget_ReadIsSplit(t *testing.T) {
	target, disk := newTarget(t)
	i := loggedIn(t, serve(t, target), pair{"MaxRecvDataSegmentLength", "1030"}, pair{"MaxBurstLength", "1500"})
	r := i.command(0, cdb10(0x28, 3, 8), 8*BlockSize, nil, 0)
	if want := []int{1028, 472, 1028, 472, 1028, 68}; r.status != 0 || !bytes.Equal(r.data, disk.b[3*BlockSize:11*BlockSize]) || !slices.Equal(i.segments, want) {
		t.Errorf("status %d, %d bytes in %v", r.status, len(r.data), i.segments)
	}
	if r.commandWindow != window {
		t.Errorf("the window has %d commands after an answer", r.commandWindow)
	}
}

// endsEarly is a disk that has lost its end, as a file that was truncated.
type endsEarly struct{ *memory }

func (e endsEarly) Size() int64 { return e.memory.Size() + 8*BlockSize }

func (e endsEarly) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(e.b).ReadAt(p, off)
}

func TestTarget_NoDataOfOthersWhereDiskEndsEarly(t *testing.T) {
	target, disk := newTarget(t)
	if err := target.Add(1, LUN{Disk: endsEarly{disk}}); err != nil {
		t.Fatal(err)
	}
	i := loggedIn(t, serve(t, target))
	for range 20 { // a buffer is used again
		i.command(0, cdb10(0x28, 0, 16), 16*BlockSize, nil, 0)
		if r := i.command(1, cdb10(0x28, 2046, 8), 8*BlockSize, nil, 0); r.status != 0 || !bytes.Equal(r.data, append(bytes.Clone(disk.b[2046*BlockSize:]), make([]byte, 6*BlockSize)...)) {
			t.Fatal("not zeros:", r.status, len(r.data))
		}
	}
}

func TestTarget_WriteByImmediateDataAndR2T(t *testing.T) {
	for _, c := range []struct {
		cdb       []byte
		immediate int
		synced    int
	}{
		{cdb10(0x2a, 5, 64), 0, 0},
		{cdb10(0x2a, 5, 64), 777, 0},
		{cdb10(0x2a, 5, 64), 64 * BlockSize, 0},
		{append([]byte{0x2a, 8}, cdb10(0, 5, 64)[2:]...), 4096, 1}, // forced unit access
		{[]byte{0x0a, 0, 0, 5, 64, 0}, 0, 0},
		{[]byte{0xaa, 0, 0, 0, 0, 5, 0, 0, 0, 64}, 0, 0},
		{[]byte{0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 64}, 0, 0},
	} {
		target, disk := newTarget(t)
		i := loggedIn(t, serve(t, target), pair{"MaxBurstLength", "5000"})
		before, out := bytes.Clone(disk.b), bytes.Repeat([]byte("new!"), 64*BlockSize/4)
		r := i.command(0, c.cdb, len(out), out, c.immediate)
		copy(before[5*BlockSize:], out)
		if r.status != 0 || !bytes.Equal(disk.b, before) || disk.synced != c.synced {
			t.Errorf("% x with %d bytes: status %d, sense %v, synced %d times", c.cdb, c.immediate, r.status, r.sense, disk.synced)
		}
		i.command(0, cdb10(0x35, 0, 0), 0, nil, 0)
		if disk.synced != c.synced+1 {
			t.Error("SYNCHRONIZE CACHE does not")
		}
	}
}

func TestTarget_UnmapAndWriteSame(t *testing.T) {
	target, disk := newTarget(t)
	i := loggedIn(t, serve(t, target))
	want := bytes.Clone(disk.b)
	list := make([]byte, 40)
	be.PutUint16(list, 38)
	be.PutUint16(list[2:], 32)
	be.PutUint64(list[8:], 10)
	be.PutUint32(list[16:], 5)
	be.PutUint64(list[24:], 2047)
	be.PutUint32(list[32:], 1)
	clear(want[10*BlockSize : 15*BlockSize])
	clear(want[2047*BlockSize:])
	if r := i.command(0, cdb10(0x42, 0, 40), 40, list, 20); r.status != 0 || !bytes.Equal(disk.b, want) {
		t.Error("UNMAP:", r)
	}
	be.PutUint32(list[32:], 2)
	if r := i.command(0, cdb10(0x42, 0, 40), 40, list, 0); r.sense != errRange || !bytes.Equal(disk.b, want) {
		t.Error("UNMAP beyond the end:", r)
	}
	block := pattern(BlockSize)
	if r := i.command(0, cdb10(0x41, 100, 700), BlockSize, block, 0); r.status != 0 || !bytes.Equal(disk.b[100*BlockSize:800*BlockSize], bytes.Repeat(block, 700)) {
		t.Error("WRITE SAME (10):", r)
	}
	noData := []byte{0x93, 1, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 50}
	if r := i.command(0, noData, 0, nil, 0); r.status != 0 || !bytes.Equal(disk.b[100*BlockSize:150*BlockSize], make([]byte, 50*BlockSize)) {
		t.Error("WRITE SAME (16) without data:", r)
	}
}

func TestTarget_ReadOnlyRefusesWrites(t *testing.T) {
	target, _ := newTarget(t)
	i := loggedIn(t, serve(t, target))
	for _, op := range []byte{0x0a, 0x2a, 0xaa, 0x8a, 0x41, 0x93, 0x42} {
		cdb := make([]byte, 16)
		cdb[0], cdb[8] = op, 24
		if r := i.command(readOnlyLUN, cdb, BlockSize, make([]byte, BlockSize), BlockSize); r.status != statusCheck || r.sense != errReadOnly || r.under != BlockSize {
			t.Errorf("%#x: %+v", op, r)
		}
	}
	if r := i.command(readOnlyLUN, []byte{0x1a, 0, 0x3f, 0, 255}, 255, nil, 0); len(r.data) < 4 || r.data[2]&0x80 == 0 {
		t.Error("MODE SENSE:", r)
	}
	if r := i.command(readOnlyLUN, cdb10(0x28, 0, 1), BlockSize, nil, 0); !bytes.Equal(r.data, pattern(BlockSize)) {
		t.Error("READ:", r)
	}
	if r := i.command(0, []byte{0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, 256, nil, 0); !bytes.Equal(r.data, append([]byte{0, 0, 0, 16}, append(make([]byte, 12), 0x41, 0x2c, 0, 0, 0, 0, 0, 0)...)) {
		t.Errorf("REPORT LUNS: % x", r.data)
	}
}

func TestTarget_Residuals(t *testing.T) {
	target, disk := newTarget(t)
	i := loggedIn(t, serve(t, target))
	read, write, out := cdb10(0x28, 0, 2), cdb10(0x2a, 0, 2), bytes.Repeat([]byte{9}, 2000)
	for _, c := range []struct {
		cdb                           []byte
		expected, length, under, over int
	}{
		{read, 2000, 1024, 976, 0},
		{read, 1000, 1000, 0, 24},
		{read, 0, 0, 0, 1024},
		{write, 2000, 1024, 976, 0},
		{write, 600, 600, 0, 424},
		{write, 0, 0, 0, 1024},
	} {
		clear(disk.b)
		data := out[:c.expected]
		if c.cdb[0] == 0x28 {
			data = nil
		}
		r := i.command(0, c.cdb, c.expected, data, 0)
		moved := len(r.data)
		if data != nil {
			moved = bytes.Count(disk.b[:4096], []byte{9})
		}
		if r.status != 0 || r.under != c.under || r.over != c.over || moved != c.length {
			t.Errorf("%#x of %d: %d bytes, residual -%d +%d, status %d", c.cdb[0], c.expected, moved, r.under, r.over, r.status)
		}
	}
}

func TestTarget_RefusesCommands(t *testing.T) {
	target, _ := newTarget(t)
	i := loggedIn(t, serve(t, target))
	for _, c := range []struct {
		lun  uint16
		cdb  []byte
		want sense
	}{
		{0, cdb10(0x28, 2048, 1), errRange},
		{0, []byte{0x88, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, errRange},
		{0, []byte{0x28, 0x20}, errField},
		{0, []byte{0x5f}, errOpcode},
		{0, []byte{0x9e, 0x11}, errField},
		{0, []byte{0x12, 1, 0x99, 1, 0}, errField},
		{0, []byte{0x1a, 0, 0xff, 0, 255}, errSaving},
		{1, cdb10(0x28, 0, 1), errNoUnit},
		{readOnlyLUN, []byte{0x1b, 0, 0, 0, 2}, errField},
	} {
		if r := i.command(c.lun, c.cdb, 512, nil, 0); r.status != statusCheck || r.sense != c.want {
			t.Errorf("LUN %d, % x: status %d, %v", c.lun, c.cdb, r.status, r.sense)
		}
	}
}

func TestTarget_DiskErrorsAreSenseDataAndLogged(t *testing.T) {
	target, disk := newTarget(t)
	var logged []string
	target.Log = func(err error) { logged = append(logged, err.Error()) }
	i := loggedIn(t, serve(t, target))
	for _, c := range []struct {
		broken error
		cdb    []byte
		want   sense
	}{
		{unix.EIO, cdb10(0x28, 0, 1), errRead},
		{unix.EIO, cdb10(0x2a, 0, 1), errWrite},
		{unix.EIO, cdb10(0x35, 0, 1), errWrite},
		{fmt.Errorf("disk: %w", unix.ENOSPC), cdb10(0x2a, 0, 1), errNoSpace},
	} {
		disk.broken = c.broken
		var out []byte
		if c.cdb[0] == 0x2a {
			out = make([]byte, BlockSize)
		}
		logged = nil
		if r := i.command(0, c.cdb, BlockSize, out, 0); r.sense != c.want || len(logged) != 1 || !strings.Contains(logged[0], c.broken.Error()) {
			t.Errorf("%#x: %v, %q", c.cdb[0], r.sense, logged)
		}
	}
}

// waitsForData begins a WRITE whose data doesn't come.
func waitsForData(i *initiator) (r2t pdu) {
	i.Helper()
	r2t = *i.ask(opCommand, flagFinal|flagWrite, nil, func(b []byte) { fillCommand(b, 0, cdb10(0x2a, 0, 1), BlockSize) })
	if r2t.op() != opR2T {
		i.Fatalf("opcode %#x", r2t.op())
	}
	return r2t
}

func TestTarget_TaskManagement(t *testing.T) {
	target, disk := newTarget(t)
	i := loggedIn(t, serve(t, target))
	manage := func(function byte, lun uint16, tag uint32) byte {
		p := i.ask(opTaskMgmt, flagFinal|function, nil, func(b []byte) {
			be.PutUint16(b[8:], lun)
			be.PutUint32(b[20:], tag)
		})
		if p.op() != opTaskReply {
			t.Fatalf("opcode %#x", p.op())
		}
		return p.header[2]
	}
	r2t := waitsForData(i)
	for _, c := range []struct {
		what      string
		got, want byte
	}{
		{"another task", manage(1, 0, 1), 1},
		{"a task", manage(1, 0, r2t.tag()), 0},
		{"the same again", manage(1, 0, r2t.tag()), 1},
		{"reset of a missing LUN", manage(5, 9, 0), 2},
		{"reassign", manage(8, 0, 0), 4},
		{"cold reset", manage(7, 0, 0), 5},
	} {
		if c.got != c.want {
			t.Errorf("%s: response %d, not %d", c.what, c.got, c.want)
		}
	}
	i.dataOut(&r2t, bytes.Repeat([]byte{9}, BlockSize)) // comes too late
	r2t = waitsForData(i)
	if got := manage(5, 0, 0); got != 0 {
		t.Error("reset:", got)
	}
	i.dataOut(&r2t, bytes.Repeat([]byte{9}, BlockSize))
	if r := i.command(0, cdb10(0x28, 0, 1), BlockSize, nil, 0); !bytes.Equal(r.data, pattern(BlockSize)) || r.commandWindow != window {
		t.Errorf("data of an aborted task was written, or the window has %d commands", r.commandWindow)
	}
	if disk.synced != 0 {
		t.Error(disk.synced)
	}
}

func TestTarget_WindowBoundsCommands(t *testing.T) {
	target, _ := newTarget(t)
	i := loggedIn(t, serve(t, target))
	var first pdu
	for n := range window {
		r2t := waitsForData(i)
		if n == 0 {
			first = r2t
		}
		if left := int(r2t.word(32) - r2t.word(28) + 1); left != window-1-n {
			t.Fatalf("%d commands may come after %d", left, n+1)
		}
	}
	i.send(opNopOut, flagFinal, []byte("ignored"), func(b []byte) { be.PutUint32(b[20:], noTag) })
	i.tag = first.tag()
	i.dataOut(&first, make([]byte, BlockSize))
	if p := i.receive(); p.op() != opResponse || p.header[3] != 0 {
		t.Errorf("opcode %#x", p.op())
	}
	if p := i.ask(opNopOut, flagFinal, []byte("ping"), func(b []byte) { be.PutUint32(b[20:], noTag) }); p.op() != opNopIn || string(p.data) != "ping" {
		t.Errorf("opcode %#x, %q", p.op(), p.data)
	}
}

func TestTarget_WrongDataOutEndsTask(t *testing.T) {
	target, disk := newTarget(t)
	i := loggedIn(t, serve(t, target))
	for at, value := range map[int]uint32{20: 12345, 36: 7, 40: 512} {
		r2t := waitsForData(i)
		i.send(opDataOut, flagFinal, make([]byte, BlockSize), func(b []byte) {
			be.PutUint32(b[20:], r2t.word(20))
			be.PutUint32(b[at:], value)
		})
		if p := i.receive(); p.op() != opResponse || p.header[3] != statusCheck {
			t.Errorf("opcode %#x, status %d", p.op(), p.header[3])
		}
	}
	if !bytes.Equal(disk.b[:1024], pattern(1024)) {
		t.Error("it was written")
	}
}

func TestTarget_RemovedLUNIsNotUsed(t *testing.T) {
	target, disk := newTarget(t)
	i := loggedIn(t, serve(t, target))
	r2t := waitsForData(i)
	target.Remove(0)
	i.dataOut(&r2t, make([]byte, BlockSize))
	if p := i.receive(); p.header[3] != statusCheck || !bytes.Equal(disk.b[:BlockSize], pattern(BlockSize)) {
		t.Error("it was written")
	}
	if r := i.command(0, cdb10(0x28, 0, 1), BlockSize, nil, 0); r.sense != errNoUnit {
		t.Error(r)
	}
	target.Remove(0)
	if err := target.Add(0, LUN{Disk: disk}); err != nil {
		t.Fatal(err)
	}
	if r := i.command(0, cdb10(0x28, 0, 1), BlockSize, nil, 0); r.status != 0 {
		t.Error(r)
	}
	if err := target.Add(0, LUN{Disk: disk}); err == nil {
		t.Error("a number is served twice")
	}
	if err := target.Add(1, LUN{Disk: &memory{b: make([]byte, 700)}}); err == nil {
		t.Error("a disk with a part of a block is served")
	}
}

func TestTarget_ManySessionsReadAndWrite(t *testing.T) {
	target, disk := newTarget(t)
	address := serve(t, target)
	var all sync.WaitGroup
	for n := range 8 {
		i := dial(t, address)
		i.isid, i.stage = byte(n), stageOperational
		i.login(stageFull, names...)
		all.Go(func() {
			out := bytes.Repeat([]byte{byte('a' + n)}, 16*BlockSize)
			for range 20 {
				i.command(0, cdb10(0x2a, uint32(n*16), 16), len(out), out, 512)
				if r := i.command(0, cdb10(0x28, uint32(n*16), 16), len(out), nil, 0); !bytes.Equal(r.data, out) {
					t.Error("read other data than was written")
				}
			}
		})
	}
	all.Wait()
	if got := string(disk.b[7*16*BlockSize : 7*16*BlockSize+3]); got != "hhh" {
		t.Error(got)
	}
}

// numbered is one of several initiators that log in.
func numbered(t *testing.T, address string, isid byte) *initiator {
	t.Helper()
	i := dial(t, address)
	i.isid, i.stage = isid, stageOperational
	if answers, status := i.login(stageFull, names...); status != [2]byte{} {
		t.Fatal(answers, status)
	}
	return i
}

// Each initiator that has logged in is told once that a disk has grown, by the first command that may wait for that, and can use the rest.
func TestTarget_GrownIsToldOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(path, pattern(1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	disk, err := OpenFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	target, _ := newTarget(t)
	if err := target.Add(1, LUN{Disk: disk}); err != nil {
		t.Fatal(err)
	}
	address := serve(t, target)
	one, other := numbered(t, address, 1), numbered(t, address, 2)
	if err := disk.Extend(2<<20, func() error {
		if r := one.command(1, cdb10(0x28, 2048, 1), BlockSize, nil, 0); r.sense != errRange {
			t.Errorf("before it is noted: %+v", r)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	target.Grown(1)
	block := bytes.Repeat([]byte{7}, BlockSize)
	for _, i := range []*initiator{one, other} {
		if r := i.command(1, []byte{opInquiry, 0, 0, 0, 96, 15: 0}, 96, nil, 0); r.status != 0 {
			t.Errorf("INQUIRY: %+v", r)
		}
		if r := i.command(0, cdb10(0x28, 0, 1), BlockSize, nil, 0); r.status != 0 {
			t.Errorf("another LUN: %+v", r)
		}
		if r := i.command(1, cdb10(0x2a, 4095, 1), BlockSize, block, BlockSize); r.status != statusCheck || r.sense != errGrown {
			t.Errorf("first: %+v", r)
		}
		if r := i.command(1, cdb10(0x2a, 4095, 1), BlockSize, block, BlockSize); r.status != 0 {
			t.Errorf("then: %+v", r)
		}
		if r := i.command(1, []byte{0x25, 15: 0}, 8, nil, 0); r.status != 0 || be.Uint32(r.data) != 4095 {
			t.Errorf("READ CAPACITY: %+v", r)
		}
	}
	late := numbered(t, address, 3)
	if r := late.command(1, cdb10(0x28, 4095, 1), BlockSize, nil, 0); r.status != 0 || !bytes.Equal(r.data, block) {
		t.Errorf("one that came later: %+v", r)
	}
	if err := disk.Extend(1<<20, func() error { return nil }); err != nil || disk.Size() != 2<<20 {
		t.Errorf("it has %d bytes, %v", disk.Size(), err)
	}
}
