package provider_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreign are messages of other programs that the guide explains.
var foreign = []string{
	"Permission denied (publickey", "connect: permission denied", "connect: no such file or directory", "Could not resolve hostname", "Connection refused",
	"Connection timed out", "cannot find character device", "storage pool '", "Host key verification failed", "certificate signed by unknown authority", "certificate is valid for",
	"doesn't match any of the checksums previously recorded", "cannot connect to '", "inconsistent final plan", "Network not found", "' is not active",
	"Cannot get interface MTU on '", "': No such device", "hostname on destination resolved to localhost",
}

// Who searches the guide for a message finds it only while both have the same words.
func TestTroubleshooting_MessagesAreThoseOfCode(t *testing.T) {
	code := sources(t)
	for page, least := range map[string]int{"troubleshooting": 30, "moving-machines": 10} {
		text, err := os.ReadFile("../../templates/guides/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		entries := regexp.MustCompile("\\*\\*`([^`]+)`\\*\\*").FindAllStringSubmatch(string(text), -1)
		if len(entries) < least {
			t.Fatalf("the guide %s has only %d messages", page, len(entries))
		}
		check(t, page, entries, code)
	}
}

// check fails the test if the program has none of the messages of a guide.
func check(t *testing.T, page string, entries [][]string, code string) {
	t.Helper()
	for _, entry := range entries {
		for part := range strings.SplitSeq(entry[1], "…") {
			part = strings.TrimSpace(part)
			if len(part) > 12 && !slices.Contains(foreign, part) && !strings.Contains(code, part) {
				t.Errorf("nothing says %q of %q in the guide %s", part, entry[1], page)
			}
		}
	}
}

// sources are the texts of the program, without the places where a long one is broken.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := fs.WalkDir(os.DirFS("../.."), "internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile("../../" + path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	joined := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(all.String(), "")
	return strings.ReplaceAll(joined, `\"`, `"`)
}
