package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// disk is the name of the machine's disk in the example; writes is the text that its guest writes there.
func (m machine) disk() string   { return m.name + "-root" }
func (m machine) writes() string { return "written-by-" + m.name }

// verify verifies and shows what the guests read and wrote, and that their data is on their own disks and not on the master, whose hash was
// computed before.
func (s *demoEnvironment) verify(ctx context.Context, hash string) error {
	for _, m := range quickstart {
		if err := s.verifyGuest(ctx, m); err != nil {
			return fmt.Errorf("machine %s: %w", m.name, err)
		}
	}
	for _, m := range quickstart {
		if err := s.verifyDisk(m); err != nil {
			return fmt.Errorf("disk %s on %s: %w", m.disk(), m.host, err)
		}
	}
	return s.verifyMaster(hash)
}

// verifyGuest waits for the guest, shows its output, and checks that it has read the master and written.
func (s *demoEnvironment) verifyGuest(ctx context.Context, m machine) error {
	say("waiting until %s on %s has booted", m.name, m.host)
	text, err := awaitReady(ctx, s.logOf(m))
	for line := range strings.FieldsFuncSeq(text, isLineBreak) {
		fmt.Printf("    %s | %s\n", m.name, line)
	}
	if err != nil {
		return err
	}
	for _, want := range []string{"first=" + goldenContent, "WROTE vda offset=4096 text=" + m.writes()} {
		if !strings.Contains(text, want) {
			return fmt.Errorf("its guest does not say %q", want)
		}
	}
	return nil
}

// verifyDisk searches the disk's file for the guests' texts, which qcow2 stores uncompressed.
func (s *demoEnvironment) verifyDisk(m machine) error {
	content, err := os.ReadFile(filepath.Join(s.Hosts[m.host].Dir, "pools", pool, m.disk()))
	if err != nil {
		return err
	}
	for _, other := range quickstart {
		has := bytes.Contains(content, []byte(other.writes()))
		if has && other != m {
			return fmt.Errorf("it has what %s wrote", other.name)
		}
		if !has && other == m {
			return fmt.Errorf("it does not have what %s wrote", other.name)
		}
	}
	say("the disk %s in the pool %s of %s, a file of %d KiB, has what %s wrote",
		m.disk(), pool, m.host, len(content)>>10, m.name)
	return nil
}

// verifyMaster compares the storage behind the golden claim with its former content.
func (s *demoEnvironment) verifyMaster(before string) error {
	after, err := s.hashMaster()
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("the storage behind the claim %s/%s was written to: its SHA-256 was %s and is %s",
			namespace, golden, before, after)
	}
	say("the storage behind the claim %s/%s still has the SHA-256 %.16s…: the master is unchanged",
		namespace, golden, after)
	return nil
}

// hashMaster is the SHA-256 of the storage behind the golden claim.
func (s *demoEnvironment) hashMaster() (string, error) {
	file, err := os.Open(s.luns[golden].Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
