package host

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket"
)

// message is one of libvirt's messages.
func message(program, kind uint32, body []byte) []byte {
	var m []byte
	for _, word := range []uint32{uint32(headerSize + len(body)), program, 1, 318, kind, 0, 0} {
		m = binary.BigEndian.AppendUint32(m, word)
	}
	return append(m, body...)
}

// lifecycle is the event of a domain.
func lifecycle(name string, id byte) []byte {
	body := binary.BigEndian.AppendUint32(nil, 7)
	body = binary.BigEndian.AppendUint32(body, uint32(len(name)))
	body = append(body, name...)
	body = append(body, make([]byte, (4-len(name)%4)%4)...)
	body = append(body, bytes.Repeat([]byte{id}, 16)...)
	return message(remoteProgram, socket.Message, append(body, make([]byte, 12)...))
}

// follower is a wire that reads the given bytes and records the events in them.
type follower struct {
	wire
	ids     []byte
	names   []string
	unclear int
}

type readOnly struct {
	net.Conn
	io.Reader
}

func (r readOnly) Read(p []byte) (int, error) { return r.Reader.Read(p) }

func follow(r io.Reader) *follower {
	f := &follower{}
	f.wire = wire{
		Conn: readOnly{Reader: r}, unclear: func() { f.unclear++ },
		changed: func(id libvirt.UUID, name string) { f.ids, f.names = append(f.ids, id[0]), append(f.names, name) },
	}
	return f
}

// Events are found wherever reads begin and end, and everything else is handed on as it came.
func TestWire_FindsEventsInAnyReads(t *testing.T) {
	all := slices.Concat(
		lifecycle("web", 1), message(remoteProgram, socket.Reply, make([]byte, 10_000)), lifecycle("", 2), lifecycle("four", 3),
		message(remoteProgram, socket.Reply, lifecycle("in a reply", 99)), message(0x6b656570, socket.Message, nil),
		message(remoteProgram, socket.Stream, lifecycle("in a stream", 99)), lifecycle("a domain", 4), lifecycle("web", 1),
	)
	for round := range 500 {
		var reader io.Reader = bytes.NewReader(all)
		switch round {
		case 0: // as much as there is
		case 1:
			reader = iotest.OneByteReader(reader)
		default:
			reader = randomReader{reader, rand.New(rand.NewPCG(uint64(round), 0))}
		}
		f := follow(reader)
		read, err := io.ReadAll(f)
		if err != nil || !bytes.Equal(read, all) {
			t.Fatalf("round %d: read %d of %d bytes, %v", round, len(read), len(all), err)
		}
		if !bytes.Equal(f.ids, []byte{1, 2, 3, 4, 1}) || !slices.Equal(f.names, []string{"web", "", "four", "a domain", "web"}) || f.unclear > 0 {
			t.Fatalf("round %d: %v, %q, %d unclear", round, f.ids, f.names, f.unclear)
		}
	}
}

type randomReader struct {
	io.Reader
	*rand.Rand
}

func (r randomReader) Read(p []byte) (int, error) {
	return r.Reader.Read(p[:min(len(p), 1+r.IntN(100))])
}

// The event is told before its last byte is handed on.
func TestWire_TellsEventBeforeWhatFollows(t *testing.T) {
	event := lifecycle("web", 1)
	f := follow(iotest.OneByteReader(bytes.NewReader(event)))
	for range len(event) - 1 {
		_, _ = f.Read(make([]byte, 1))
	}
	if _, _ = f.Read(make([]byte, 1)); !bytes.Equal(f.ids, []byte{1}) {
		t.Errorf("told %v", f.ids)
	}
}

// Of an event without a readable domain all definitions are dropped, and of what is none of libvirt's messages at each read.
func TestWire_UnclearEvents(t *testing.T) {
	long := binary.BigEndian.AppendUint32(make([]byte, 4), 1<<31)
	for name, c := range map[string]struct {
		bytes   []byte
		unclear int
	}{
		"short":        {message(remoteProgram, socket.Message, make([]byte, 3)), 1},
		"without UUID": {message(remoteProgram, socket.Message, make([]byte, 20)), 1},
		"long name":    {message(remoteProgram, socket.Message, long), 1},
		"very long":    {lifecycle(string(make([]byte, 2*maxEvent)), 1), 1},
	} {
		f := follow(bytes.NewReader(append(c.bytes, lifecycle("next", 9)...)))
		if _, err := io.ReadAll(f); err != nil || f.unclear != c.unclear || !bytes.Equal(f.ids, []byte{9}) {
			t.Errorf("%s: %v, %d unclear, %v", name, err, f.unclear, f.ids)
		}
	}
	f := follow(iotest.OneByteReader(bytes.NewReader(make([]byte, headerSize+10))))
	if _, err := io.ReadAll(f); err != nil || f.unclear < 10 {
		t.Errorf("no messages: %v, %d unclear", err, f.unclear)
	}
}

func FuzzWire(f *testing.F) {
	f.Add(lifecycle("web", 1), 3)
	f.Add(message(remoteProgram, socket.Message, nil), 1)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		w := follow(bytes.NewReader(in))
		part := make([]byte, 1+uint(size)%64)
		var out []byte
		for {
			n, err := w.Read(part)
			if out = append(out, part[:n]...); err != nil {
				break
			}
		}
		if whole := follow(bytes.NewReader(in)); !bytes.Equal(out, in) {
			t.Error("other bytes")
		} else if whole.follow(in); !bytes.Equal(whole.ids, w.ids) {
			t.Errorf("%v in parts, %v as a whole", w.ids, whole.ids)
		}
	})
}
