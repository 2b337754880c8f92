//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func (m *machine) setHostname() {
	name := m.config.Hostname
	if name == "" {
		return
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		say("set the host name: %v", err)
	}
	if err := writeEtc(sysroot, "hostname", name+"\n"); err != nil {
		say("%v", err)
	}
}

func hostsFile(hostname string) string {
	text := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	if hostname == "" || hostname == "localhost" {
		return text
	}
	short, _, isLong := strings.Cut(hostname, ".")
	if isLong {
		return text + "127.0.1.1\t" + hostname + " " + short + "\n"
	}
	return text + "127.0.1.1\t" + hostname + "\n"
}

// resolvHead tells a file of ours, from an earlier start, from one of the image.
const resolvHead = "# Written by virtclaim at each start.\n"

func resolvFile(servers, search []string) string {
	var text strings.Builder
	text.WriteString(resolvHead)
	if len(servers) == 0 {
		text.WriteString("# No interface has a DNS server.\n")
	}
	if len(search) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(search, " "))
	}
	for _, server := range servers {
		fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	return text.String()
}

// writeEtc replaces a file in the image's /etc. A link there, as resolv.conf often is, leads to what only the image's own init would make:
// it is replaced, too.
func writeEtc(root, name, content string) error {
	folder, err := openFolder(root, "/etc")
	if err != nil {
		return err
	}
	defer folder.Close() //nolint:errcheck // a handle without content
	etc, err := os.OpenRoot(handlePath(folder))
	if err != nil {
		return fmt.Errorf("write /etc/%s: %w", name, err)
	}
	defer etc.Close() //nolint:errcheck // a handle without content
	info, err := etc.Lstat(name)
	if err == nil && info.Mode()&fs.ModeType != 0 {
		err = etc.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write /etc/%s: %w", name, err)
	}
	if err := etc.WriteFile(name, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write /etc/%s: %w", name, err)
	}
	return nil
}
