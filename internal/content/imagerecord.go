package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// What a container image is (its layers and its configuration) is recorded beside the image of its highest layer in a pool, and goes with
// that: the next disk of the same digest then needs no registry.

// maxImageRecord is the maximal size of a record, in bytes: libvirt's messages are limited.
const maxImageRecord = 64 << 10

func imageUsage(pool, top, digest string) string {
	return "virtclaim image " + pool + "/" + top + " " + digest
}

// noteImage records what the container image of a root file system is, unless that is too long.
func (s Spec) noteImage(ctx context.Context, h Identities) error {
	if s.Root.Digest == "" {
		return nil
	}
	text, err := json.Marshal(s.Root)
	if err != nil || len(text) > maxImageRecord {
		return err
	}
	return addRecord(ctx, h, imageUsage(s.Pool, s.baseNames[len(s.baseNames)-1], s.Root.Digest), string(text))
}

// forgetImages removes the records of container images with that highest layer. records are the UUIDs of the host's secrets.
func forgetImages(ctx context.Context, h Identities, records map[string]string, pool, top string) (err error) {
	for usage, id := range records {
		if strings.HasPrefix(usage, imageUsage(pool, top, "")) {
			err = errors.Join(err, ignoreNotFound(h.UndefineSecret(ctx, id)))
		}
	}
	return err
}

// NotedImage is the container image with that digest, by the record of an earlier disk in the pool. Its layers can't be opened.
func NotedImage(ctx context.Context, h Host, pool, reference, digest string) (is image.RootFS, err error) {
	records, err := h.SecretsOfVolumes(ctx)
	text := ""
	for usage, id := range records {
		if err == nil && strings.HasPrefix(usage, "virtclaim image "+pool+"/") && strings.HasSuffix(usage, " "+digest) {
			text, err = descriptionOf(ctx, h, id)
		}
	}
	if err == nil && json.Unmarshal([]byte(text), &is) != nil || len(is.Layers) == 0 {
		err = errors.Join(err, fmt.Errorf("the storage pool %s has no disk of the container image %s that says which layers it has, and "+
			"with pull_policy = \"Never\" the registry is not asked. Make one disk of it with IfNotPresent", pool, reference))
	}
	for n := range is.Layers {
		is.Layers[n].Image = reference
		is.Layers[n].Open = func(context.Context) (io.ReadCloser, error) {
			return nil, errors.New("it is not on the host, and with pull_policy = \"Never\" the registry is not asked")
		}
	}
	return is, err
}
