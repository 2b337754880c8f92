package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/google/uuid"
)

// identityExtension is the type of the header extension with the identity of a qcow2 image, in ASCII "vcID". QEMU preserves unknown
// extensions (QEMU, docs/interop/qcow2.txt) in all operations on the same image; a converted or new image has none.
const identityExtension = 0x76634944

// ErrNoRoom is the error of a qcow2 image whose header has no room for an identity.
var ErrNoRoom = errors.New("there is no room for an identity in the header of the qcow2 image")

// extension is a header extension of a qcow2 image.
type extension struct {
	kind uint32
	data []byte
}

// Identity returns the identity in the header of a qcow2 image; empty if it has none. For a raw image the result has no meaning, because
// its guest may have written any header.
func Identity(head []byte) string {
	if id := extensionOf(head, identityExtension); isUUID(id) {
		return id
	}
	return ""
}

// BackingFormat is the format in which QEMU opens the backing file of a qcow2 image, by its header; empty if that does not say it.
func BackingFormat(head []byte) string { return extensionOf(head, backingFormat) }

// extensionOf is the data of the first extension of a kind in the header of a qcow2 image; empty without one.
func extensionOf(head []byte, kind uint32) string {
	all, _, _ := qcow2(head).extensions()
	for _, e := range all {
		if e.kind == kind {
			return string(e.data)
		}
	}
	return ""
}

// isUUID reports whether a text is a UUID as virtclaim formats it. The author of an image may have written anything there.
func isUUID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

// WithIdentity returns the header of the qcow2 image that begins with head, with its identity set or replaced. Data that follows the
// extensions in the first cluster moves back, and the bytes there must be unused. The result ends with the header, because guest data may
// follow. The image must not be open in QEMU, which would overwrite the header.
func WithIdentity(head []byte, id string) ([]byte, error) {
	q := qcow2(slices.Clone(head))
	all, end, err := q.extensions()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e extension) bool { return e.kind == identityExtension })
	all = append([]extension{{identityExtension, []byte(id)}}, all...)
	backing, end, err := q.firstCluster().backingName(end)
	if err != nil {
		return nil, err
	}
	return q.with(all, backing, end)
}

// WithBacking returns the header of a qcow2 image with another name of its backing file, as of the same disk on another host. ErrNoRoom is
// the error of a header that has none, or none of that length.
func WithBacking(head []byte, name string) ([]byte, error) {
	q := qcow2(slices.Clone(head))
	all, end, err := q.extensions()
	if err != nil {
		return nil, err
	}
	was, end, err := q.firstCluster().backingName(end)
	if err == nil && len(was) == 0 {
		err = ErrNoRoom
	}
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(q[qcow2BackingSize:], uint32(len(name)))
	return q.with(all, []byte(name), end)
}

// with returns the image's header with these extensions and this name of a backing file. Header and name end at end now.
func (q qcow2) with(all []extension, backing []byte, end int) ([]byte, error) {
	start := q.headerEnd()
	var text []byte
	for _, e := range all {
		text = binary.BigEndian.AppendUint32(text, e.kind)
		text = binary.BigEndian.AppendUint32(text, uint32(len(e.data)))
		text = append(text, e.data...)
		text = append(text, make([]byte, -len(e.data)&7)...)
	}
	text = append(text, make([]byte, 8)...) // end of the extensions
	if len(backing) > 0 {
		binary.BigEndian.PutUint64(q[qcow2Backing:], uint64(int(start)+len(text)))
		text = append(text, backing...)
	}
	room := min(len(q), 1<<q.word(qcow2ClusterBits))
	now := int(start) + len(text)
	if now > room || now > end && len(bytes.Trim(q[end:now], "\x00")) > 0 {
		return nil, ErrNoRoom
	}
	clear(q[start:max(end, now)])
	copy(q[start:], text)
	return q[:max(end, now)], nil
}

// headerEnd returns the offset of the extensions.
func (q qcow2) headerEnd() uint32 {
	if q.word(qcow2Version) == 2 {
		return qcow2Short
	}
	return q.word(qcow2Length)
}

// firstCluster is the part from which QEMU reads the header. Guest data may follow.
func (q qcow2) firstCluster() qcow2 { return q[:min(uint64(len(q)), 1<<q.word(qcow2ClusterBits))] }

// extensions returns the extensions of the header, and their end; ErrNoRoom if there is no end mark in the first cluster.
func (q qcow2) extensions() (all []extension, end int, err error) {
	if len(q) < qcow2Length+4 || !has(q, 0, "QFI\xfb") || q.word(qcow2ClusterBits) < 9 || q.word(qcow2ClusterBits) > 21 {
		return nil, 0, ErrNoRoom
	}
	if q.word(qcow2Version) != 2 && q.headerEnd() < qcow2Length+4 {
		return nil, 0, ErrNoRoom // the extensions would overlap the header
	}
	at := uint64(q.headerEnd())
	for q = q.firstCluster(); at+8 <= uint64(len(q)); {
		kind, length := q.word(int(at)), uint64(q.word(int(at)+4))
		if at += 8; kind == 0 {
			return all, int(at), nil
		}
		if at+length > uint64(len(q)) {
			break
		}
		all = append(all, extension{kind, q[at : at+length]})
		at += (length + 7) &^ 7
	}
	return nil, 0, ErrNoRoom
}

// backingName returns the name of the backing file, and where header and name end. The name must follow the extensions, as QEMU writes it.
func (q qcow2) backingName(after int) (name []byte, end int, err error) {
	at, size, all := q.long(qcow2Backing), uint64(q.word(qcow2BackingSize)), uint64(len(q))
	if at == 0 {
		return nil, after, nil
	}
	if at < uint64(after) || at > all || size > all-at || len(bytes.Trim(q[after:at], "\x00")) > 0 {
		return nil, 0, ErrNoRoom
	}
	return bytes.Clone(q[at : at+size]), int(at + size), nil
}
