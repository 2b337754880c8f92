package lab

import (
	"context"
	"os"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// Distribution is the URL of a distribution's cloud image, which the first call makes and serves.
func (l *Lab) Distribution(ctx context.Context) (string, error) {
	web, err := l.Web(ctx)
	if err != nil {
		return "", err
	}
	image, err := artefact.Distribution(ctx, l.cache, l.log)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(image)
	if err != nil {
		return "", err
	}
	file, err := web.AddContent("debian.qcow2", content)
	return file.URL("http", web.HTTP), err
}
