package host

import (
	"encoding/binary"
	"net"

	"github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket"
)

// wire is a connection to libvirtd that tells of each event of a domain before what follows it is read. go-libvirt hands events and replies
// to different goroutines, which loses their order.
type wire struct {
	net.Conn
	// changed is called with the domain of an event; unclear for one that can't be read.
	changed func(id libvirt.UUID, name string)
	unclear func()

	// begin is the beginning of a message, as far as it has come and is needed; skip is how much of its rest is still to come.
	begin []byte
	skip  int
	// lost tells that these are no messages of libvirt's.
	lost bool
}

const (
	// remoteProgram is the number of libvirt's main protocol.
	remoteProgram = 0x20008086
	// eventKind is the kind of messages that are no calls and no replies.
	eventKind = socket.Message
	// headerSize is that of a message's length and header.
	headerSize = 28
	// maxEvent is how much of an event is read: its domain comes first.
	maxEvent = 4096
)

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.follow(p[:n])
	return n, err
}

// follow finds the events in what was read, which may begin and end within a message.
func (w *wire) follow(read []byte) {
	for len(read) > 0 && !w.lost {
		if w.skip > 0 {
			n := min(len(read), w.skip)
			read, w.skip = read[n:], w.skip-n
			continue
		}
		n := min(len(read), w.needed()-len(w.begin))
		w.begin, read = append(w.begin, read[:n]...), read[n:]
		if len(w.begin) == w.needed() {
			w.end()
		}
	}
	if w.lost {
		w.unclear() // also after each further read
	}
}

// needed is how much of the present message is needed.
func (w *wire) needed() int {
	if len(w.begin) < headerSize || !isEvent(w.begin) {
		return headerSize
	}
	return max(headerSize, min(length(w.begin), maxEvent))
}

// end is called with the needed part of a message.
func (w *wire) end() {
	if w.lost = length(w.begin) < headerSize; w.lost {
		return
	}
	if isEvent(w.begin) {
		if id, name, ok := eventDomain(w.begin[headerSize:]); ok {
			w.changed(id, name)
		} else {
			w.unclear()
		}
	}
	w.skip, w.begin = length(w.begin)-len(w.begin), w.begin[:0]
}

// length is that of the whole message.
func length(header []byte) int { return int(binary.BigEndian.Uint32(header)) }

func isEvent(header []byte) bool {
	program, kind := binary.BigEndian.Uint32(header[4:]), binary.BigEndian.Uint32(header[16:])
	return program == remoteProgram && kind == eventKind
}

// eventDomain is the domain in the body of an event, which begins with the number of the subscription (four bytes), the length of the
// domain's name, the name, padded to a multiple of four bytes, and the UUID.
func eventDomain(body []byte) (id libvirt.UUID, name string, ok bool) {
	const number, begin = 4, 8
	if len(body) < begin {
		return id, "", false
	}
	length := uint64(binary.BigEndian.Uint32(body[number:]))
	at := begin + (length+3)/4*4
	if at+uint64(len(id)) > uint64(len(body)) {
		return id, "", false
	}
	return libvirt.UUID(body[at : at+uint64(len(id))]), string(body[begin : begin+length]), true
}
