package initramfs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// headSize is how many bytes of a file are looked at to tell what it is.
const headSize = 1 << 10

// opener opens what is read. It is called more than once for hard links to files that were passed by.
type opener = func() (io.ReadCloser, error)

// Read reads a kernel and its modules from a Debian or RPM package or a tar archive with the same files, or a kernel alone; a tar archive
// and a kernel may be packed with gzip, xz or zstd. It reads to the end, whose error it returns.
func Read(open opener) (*Kernel, error) { return read([]opener{open}, (*files).addFile) }

// ReadLayers reads a kernel and its modules from the layers of a container image, the lowest one first. Each is read to its end.
func ReadLayers(open []opener) (*Kernel, error) { return read(open, (*files).addArchive) }

// read reads all again for hard links to files of other layers, which images of ostree have.
func read(open []opener, add func(*files, io.Reader) error) (*Kernel, error) {
	sought := map[string]bool{}
	found, err := readAll(open, add, sought)
	if err == nil && found.misses {
		found, err = readAll(open, add, sought)
	}
	if err != nil {
		return nil, err
	}
	return found.kernel()
}

func readAll(open []opener, add func(*files, io.Reader) error, sought map[string]bool) (found files, err error) {
	found.content = map[string][]byte{}
	for n, next := range open {
		own, err := found.readLayer(next, add, sought)
		if err == nil && own.misses { // they may be in the same layer
			own, err = found.readLayer(next, add, sought)
		}
		if err != nil && len(open) > 1 {
			err = fmt.Errorf("layer %d of %d: %w", n+1, len(open), err)
		}
		if err != nil {
			return found, err
		}
		found.put(own)
	}
	return found, nil
}

func (f *files) readLayer(open opener, add func(*files, io.Reader) error, sought map[string]bool) (own files, err error) {
	from, err := open()
	if err != nil {
		return own, err
	}
	own = files{content: map[string][]byte{}, kept: f.kept, below: f.content, sought: sought}
	return own, errors.Join(add(&own, from), from.Close())
}

// addFile adds the files of a package or an archive, or a kernel alone.
func (f *files) addFile(r io.Reader) error {
	raw := bufio.NewReaderSize(r, headSize)
	head, _ := raw.Peek(headSize) // who reads on gets the error
	add := f.addPacked
	switch {
	case bytes.HasPrefix(head, []byte(arMagic)):
		add = f.addDebian
	case bytes.HasPrefix(head, []byte(rpmMagic)):
		add = f.addRPM
	}
	if err := add(raw); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, raw) // only at its end it is verified
	return err
}

// Check refuses what is by its beginning nothing that Read reads.
func Check(r io.Reader) error {
	raw := bufio.NewReaderSize(r, headSize)
	head, err := raw.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.HasPrefix(head, []byte(arMagic)) || bytes.HasPrefix(head, []byte(rpmMagic)) {
		return nil
	}
	unpacked, err := image.Unpack(raw)
	if err != nil {
		return err
	}
	defer func() { _ = unpacked.Close() }()
	_, err = checkHead(bufio.NewReaderSize(unpacked, headSize))
	return err
}

// checkHead reports whether what comes next is a tar archive. It refuses what is neither that nor a kernel.
func checkHead(content *bufio.Reader) (isArchive bool, err error) {
	head, err := content.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return true, nil
	}
	if _, err := ArchitectureOf(head); err != nil {
		return false,
			fmt.Errorf("%w. A Debian or RPM package, a tar archive with boot/vmlinuz-<release> and lib/modules/<release>, and a kernel "+
				"alone are read", err)
	}
	return false, nil
}

// addPacked adds the files of an archive, or a kernel alone.
func (f *files) addPacked(r io.Reader) error {
	unpacked, err := image.Unpack(r)
	if err != nil {
		return err
	}
	defer func() { _ = unpacked.Close() }()
	content := bufio.NewReaderSize(unpacked, headSize)
	isArchive, err := checkHead(content)
	if err != nil {
		return err
	}
	if !isArchive {
		return f.keep("vmlinuz", content)
	}
	return f.addArchive(content)
}

// addArchive adds the files of a tar archive, which may be a layer of a container image, and reads to its end.
func (f *files) addArchive(r io.Reader) error {
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return image.Drain(r)
		}
		if err != nil {
			return fmt.Errorf("read the kernel's archive: %w", err)
		}
		name := withoutUsr(h.Name)
		switch {
		case f.isWhiteout(name):
		case h.Typeflag == tar.TypeLink && isWanted(name):
			f.link(name, withoutUsr(h.Linkname))
		case h.Typeflag == tar.TypeReg && (isWanted(name) || f.sought[name]):
			err = f.keep(name, archive)
		}
		if err = cmp.Or(err, f.count(name, 0)); err != nil {
			return err
		}
	}
}

// arMagic begins a Debian package, which is an archive of ar (https://manpages.debian.org/deb.5).
const arMagic = "!<arch>\n"

// addDebian adds the files of a Debian package: those of its member data.tar.
func (f *files) addDebian(r io.Reader) error {
	broken := func(why error) error {
		return fmt.Errorf("%w: it is no whole Debian package: %w", image.ErrUntrusted, why)
	}
	if _, err := io.CopyN(io.Discard, r, int64(len(arMagic))); err != nil {
		return broken(err)
	}
	for {
		head := make([]byte, 60)
		if _, err := io.ReadFull(r, head); err != nil {
			return broken(err)
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(head[48:58])), 10, 64)
		if err != nil || size < 0 {
			return broken(errors.New("a member has no size"))
		}
		member := io.LimitReader(r, size+size%2)
		if strings.HasPrefix(string(head), "data.tar") {
			return f.addPacked(io.LimitReader(member, size))
		}
		if _, err := io.Copy(io.Discard, member); err != nil {
			return broken(err)
		}
	}
}
