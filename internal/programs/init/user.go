//go:build linux

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/moby/sys/user"
)

// An account is what a program runs as.
type account struct {
	uid, gid int
	groups   []int
	home     string
}

// findAccount looks up user[:group] as container runtimes do: names in the image's files, numbers need not be there.
func findAccount(text, passwd, group string) (account, error) {
	const passwdFields, groupFields = 7, 3
	is, err := user.GetExecUser(text, &user.ExecUser{Home: "/"}, validLines(passwd, passwdFields-1, 2, 3),
		validLines(group, groupFields, 2))
	if err != nil {
		return account{}, fmt.Errorf("user %q is not in the image: %w. Name a user or group of its /etc/passwd or /etc/group, or a number",
			text, err)
	}
	return account{uid: is.Uid, gid: is.Gid, groups: is.Sgids, home: is.Home}, nil
}

// validLines reads the lines that have enough fields, and ids in the columns of ids: the library would take any other text for 0, which is
// root.
func validLines(file string, fields int, ids ...int) io.Reader {
	var valid strings.Builder
	for line := range strings.Lines(file) {
		parts := strings.Split(strings.TrimSpace(line), ":")
		if len(parts) >= fields && !strings.HasPrefix(line, "#") && areIDs(parts, ids) {
			_, _ = fmt.Fprintln(&valid, strings.TrimSpace(line))
		}
	}
	return strings.NewReader(valid.String())
}

func areIDs(parts []string, columns []int) bool {
	for _, column := range columns {
		if _, err := strconv.ParseUint(parts[column], 10, 31); err != nil {
			return false
		}
	}
	return true
}
