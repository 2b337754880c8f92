package artefact

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed distribution.sh
var distributionScript []byte

// Distribution returns the path of a cloud image, Debian with cloud-init and a guest agent, in qcow2. Debian has packages of all that is in
// it, but none of the image.
func Distribution(ctx context.Context, cache string, log func(format string, args ...any)) (string, error) {
	dir, err := folder(ctx, cache, "distribution-"+shortHash(distributionScript), log, func(ctx context.Context, dir string) error {
		log("making a distribution's image (4 minutes)")
		script := filepath.Join(dir, "distribution.sh")
		if err := os.WriteFile(script, distributionScript, 0o700); err != nil { //nolint:gosec // it is run
			return err
		}
		_, err := output(ctx, dir, "bash", script, dir)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("make a distribution's image: %w", err)
	}
	return filepath.Join(dir, "debian.qcow2"), nil
}
