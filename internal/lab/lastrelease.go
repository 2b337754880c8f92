package lab

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// LastRelease is the tag of the newest release before HEAD of the repository in a folder; empty as long as there is none.
func LastRelease(ctx context.Context, folder string) (string, error) {
	git := exec.CommandContext(ctx, "git", "-c", "versionsort.suffix=-", // v0.1.0-rc.1 is before v0.1.0
		"tag", "--merged", "HEAD^", "--list", "v*", "--sort=-version:refname")
	git.Dir = folder
	out, err := git.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the tags before HEAD are needed: git fetch --unshallow --tags. %w: %s", err, out)
	}
	newest, _, _ := strings.Cut(string(out), "\n")
	return newest, nil
}
