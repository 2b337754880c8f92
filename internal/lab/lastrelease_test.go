package lab

import (
	"os/exec"
	"testing"
)

// A release is compared with the one before, and no history is an error, not "no release".
func TestLastRelease(t *testing.T) {
	folder := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		command.Dir = folder
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	commit := func(tags ...string) {
		t.Helper()
		git("commit", "--allow-empty", "--no-gpg-sign", "-m", "a")
		for _, tag := range tags {
			git("tag", "--no-sign", tag)
		}
	}
	expect := func(want string) {
		t.Helper()
		if got, err := LastRelease(t.Context(), folder); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	git("init", "-b", "main")
	commit()
	if got, err := LastRelease(t.Context(), folder); err == nil {
		t.Errorf("without a commit before HEAD, the release before is %q", got)
	}
	commit("another")
	expect("")
	commit("v0.9.0")
	expect("")
	commit("v0.10.0-rc.1")
	expect("v0.9.0")
	commit("v0.10.0")
	expect("v0.10.0-rc.1")
	commit()
	expect("v0.10.0")
	git("checkout", "-b", "side", "v0.9.0")
	commit()
	expect("v0.9.0")
}
