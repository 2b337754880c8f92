package image

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// checksum is the expected hash of a file; the zero value is none.
type checksum struct{ algorithm, hex string }

// hashes are the algorithms without known collisions.
var hashes = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}

// CheckChecksum returns the error of a text that is neither empty nor a checksum, which is like sha256:hex.
func CheckChecksum(text string) error {
	_, err := parseChecksum(text)
	return err
}

// parseChecksum parses algorithm:hex.
func parseChecksum(text string) (checksum, error) {
	if text == "" {
		return checksum{}, nil
	}
	algorithm, digits, ok := strings.Cut(text, ":")
	if !ok {
		return checksum{}, fmt.Errorf("the checksum %q names no algorithm. It should be like sha256:<64 hexadecimal digits>", text)
	}
	algorithm = strings.ToLower(algorithm)
	if algorithm == "md5" || algorithm == "sha1" {
		return checksum{},
			fmt.Errorf("the checksum is of %s, which is broken: another image can be made to have the same. Use sha256 or sha512",
				algorithm)
	}
	newHash, ok := hashes[algorithm]
	if !ok {
		return checksum{}, fmt.Errorf("the checksum's algorithm %q is unknown. Use sha256 or sha512", algorithm)
	}
	if raw, err := hex.DecodeString(digits); err != nil || len(raw) != newHash().Size() {
		return checksum{}, fmt.Errorf("the checksum %q should have %d hexadecimal digits after %s and a colon", text, 2*newHash().Size(),
			algorithm)
	}
	return checksum{algorithm: algorithm, hex: strings.ToLower(digits)}, nil
}

func (c checksum) String() string { return c.algorithm + ":" + c.hex }

// verified passes bytes on, and returns io.EOF only if they are the expected ones.
type verified struct {
	r    io.Reader
	want checksum
	// size is in bytes; negative if it is unknown.
	size int64
	// differs returns the error of another checksum.
	differs func(got checksum) error

	hash hash.Hash
	read int64
}

// verify returns a reader of r that verifies the hash if want has one, and the size unless it is negative.
func verify(r io.Reader, want checksum, size int64, differs func(got checksum) error) *verified {
	v := &verified{r: r, want: want, size: size, differs: differs}
	if newHash, ok := hashes[want.algorithm]; ok {
		v.hash = newHash()
	}
	return v
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.read += int64(n)
	if v.hash != nil {
		v.hash.Write(p[:n])
	}
	if v.size >= 0 && v.read > v.size {
		return 0, fmt.Errorf("%w: it has more than the %d bytes that are announced", ErrUntrusted, v.size)
	}
	if errors.Is(err, io.EOF) {
		if why := v.check(); why != nil {
			return 0, why
		}
	}
	return n, err
}

// check verifies hash and size at the end.
func (v *verified) check() error {
	if v.size >= 0 && v.read < v.size {
		return fmt.Errorf("%w: it has only %d of the %d bytes that are announced", ErrUntrusted, v.read, v.size)
	}
	if v.hash == nil {
		return nil
	}
	if got := (checksum{v.want.algorithm, hex.EncodeToString(v.hash.Sum(nil))}); got != v.want {
		return v.differs(got)
	}
	return nil
}
