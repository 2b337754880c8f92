package volume

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// Whatever comes, the volume is complete or marked, and holds no more than it has room for.
func FuzzFill(f *testing.F) {
	content := disk(2)
	f.Add(content, false)
	for _, compressed := range []bool{false, true} {
		f.Add(qcow2Of(content, false, compressed), false)
		f.Add(qcow2Of(content, true, compressed), true)
	}
	maxRoom = 8 << 20
	defer func() { maxRoom = image.MaxCapacity }()
	f.Fuzz(func(t *testing.T, body []byte, hasScratch bool) {
		folder := inMemory(t) // a process that fuzzes is killed at the end, and would leave one that is older than the input
		c := Claim{Path: folder}
		if hasScratch {
			c.Scratch = inMemory(t)
		}
		unpacked, err := image.Body{Reader: bytes.NewReader(body), Length: int64(len(body)), Limit: 64 << 20}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unpacked.Close() }()
		is, err := c.fill(t.Context(), unpacked, -1, nil, noDigest)
		got, readErr := os.ReadFile(filepath.Join(folder, diskImage))
		if err == nil && (readErr != nil || is.Capacity > 8<<20 || int64(len(got)) != (is.Capacity+sector-1)/sector*sector) {
			t.Errorf("%+v, %d bytes, %v", is, len(got), readErr)
		}
		if _, half := marked(got); err != nil && len(got) > 0 && !half {
			t.Errorf("%v, and the volume begins with %q", err, got[:min(64, len(got))])
		}
	})
}

func FuzzDigestOf(f *testing.F) {
	f.Add("sha-256=AAAA")
	f.Add("md5=x, sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")
	f.Fuzz(func(t *testing.T, value string) {
		sum, err := digestOf(http.Header{"Digest": {value}})
		if err == nil && sum != "" && len(sum) != len("sha256:")+64 {
			t.Errorf("%q", sum)
		}
	})
}
