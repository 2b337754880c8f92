// Command image builds the container image of virtclaim-volume into a folder (an OCI image layout), and pushes it if a name is given. It
// prints the image's digest, or its name by digest where it was pushed to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/podimage"
)

func main() {
	folder := flag.String("folder", "", "the folder of the image layout, which is replaced")
	push := flag.String("push", "", "the name to push to, such as ghcr.io/virtclaim/virtclaim-volume:0.1.0")
	version := flag.String("version", "dev", "the version")
	flag.Parse()
	if err := run(context.Background(), *folder, *push, *version); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder, push, version string) error {
	if folder == "" {
		return errors.New("name a folder: -folder")
	}
	index, err := podimage.Build(ctx, version, podimage.Architectures...)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if _, err := layout.Write(folder, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if push == "" {
		fmt.Println(digest)
		return nil
	}
	to, err := name.ParseReference(push)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(to, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", to.Context(), digest)
	return nil
}
