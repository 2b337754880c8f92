package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode"
)

// URL is an image on a web server.
type URL struct {
	// URL is the address, http or https.
	URL string
	// Checksum is algorithm:hex of the file as it is served, packed or not; empty if it is unknown.
	Checksum string
	// Limit is the maximal number of bytes of the unpacked image; 0 means MaxUnpacked.
	Limit int64
}

// Check checks the address and the checksum offline.
func (u URL) Check() error {
	if err := checkAddress(u.URL); err != nil {
		return err
	}
	_, err := parseChecksum(u.Checksum)
	return err
}

// checkAddress checks an address. Its errors do not contain it: it may contain a password.
func checkAddress(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return errors.New("it is no URL. It should be like https://example.org/image.qcow2")
	}
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return fmt.Errorf("the scheme is %q, and only http and https are read. Name a file of this machine with its path instead",
			parsed.Scheme)
	case parsed.User != nil:
		return errors.New("there is a user name in the URL, and it would be readable in the state. Serve the image without a password, " +
			"or to addresses that are signed")
	case parsed.Hostname() == "":
		return errors.New("there is no host in the URL. It should be like https://example.org/image.qcow2")
	}
	return nil
}

// Open requests the image and returns a reader of its unpacked bytes. It returns io.EOF only after the whole file was read and the checksum
// verified; an error is ErrUntrusted if the content is the cause. A blocked Read ends with ctx.
func (u URL) Open(ctx context.Context) (io.ReadCloser, error) { return u.open(ctx, unpack) }

// OpenFile is Open for a file that is no image: it is not unpacked.
func (u URL) OpenFile(ctx context.Context) (io.ReadCloser, error) { return u.open(ctx, asIs) }

func (u URL) open(ctx context.Context, write func(w io.Writer, served io.Reader, limit int64) error) (io.ReadCloser, error) {
	if err := u.Check(); err != nil {
		return nil, err
	}
	want, err := parseChecksum(u.Checksum)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	body, err := (&rangeReader{ctx: ctx, client: newClient(retryTransport{network}), address: u.URL, checked: u.Checksum != ""}).open()
	if err != nil {
		defer cancel()
		return nil, redact(err, u.secrets()...)
	}
	differs := func(got checksum) error {
		return fmt.Errorf("%w: its checksum is %s, and not %s. It is another file than the checksum was made of", ErrUntrusted, got, want)
	}
	m := &meter{}
	return stream(ctx, cancel, m, func(w io.Writer) error {
		defer func() { _ = body.Close() }()
		if err := write(w, verify(m.of(body, body.size), want, -1, differs), u.Limit); err != nil {
			return redact(fmt.Errorf("%s: %w", u.URL, err), u.secrets()...)
		}
		return nil
	}), nil
}

// secrets returns the forms of the query with white space, which redact does not find itself.
func (u URL) secrets() (secrets []string) {
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return nil
	}
	plain, _ := url.QueryUnescape(parsed.RawQuery)
	for _, form := range []string{parsed.RawQuery, plain} {
		if strings.ContainsFunc(form, unicode.IsSpace) {
			secrets = append(secrets, form)
		}
	}
	return secrets
}
