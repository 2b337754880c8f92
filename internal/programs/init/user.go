//go:build linux

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An account is what a program runs as.
type account struct {
	uid, gid int
	groups   []int
	home     string
}

// FindAccount looks up user[:group] as container runtimes do: names in the image's files, numbers need not be there.
func findAccount(text, passwd, group string) (account, error) {
	user, groupName, hasGroup := strings.Cut(text, ":")
	if user == "" {
		user = "0"
	}
	found, name, err := findUser(user, passwd)
	if err != nil {
		return account{}, err
	}
	if !hasGroup || groupName == "" {
		found.groups = groupsOf(name, group)
		return found, nil
	}
	found.gid, err = findGroup(groupName, group)
	return found, err
}

// FindUser returns the user's name, too; it is empty if only the number is known.
func findUser(user, passwd string) (account, string, error) {
	const columns, home = 7, 5
	number, isNumber := parseID(user)
	for fields := range lines(passwd, columns-1) {
		uid, valid := parseID(fields[2])
		if !valid || fields[0] != user && (!isNumber || uid != number) {
			continue
		}
		gid, valid := parseID(fields[3])
		if !valid {
			continue
		}
		return account{uid: uid, gid: gid, home: fields[home]}, fields[0], nil
	}
	if !isNumber {
		return account{}, "", fmt.Errorf("user %q is not in the image's /etc/passwd: name one that is, or a number", user)
	}
	return account{uid: number, home: "/"}, "", nil
}

func findGroup(name, group string) (int, error) {
	for fields := range lines(group, 3) {
		if gid, valid := parseID(fields[2]); valid && fields[0] == name {
			return gid, nil
		}
	}
	if gid, isNumber := parseID(name); isNumber {
		return gid, nil
	}
	return 0, fmt.Errorf("group %q is not in the image's /etc/group: name one that is, or a number", name)
}

// GroupsOf returns the groups that have the user as a member.
func groupsOf(user, group string) []int {
	const members = 3
	var all []int
	for fields := range lines(group, members+1) {
		gid, valid := parseID(fields[2])
		if valid && user != "" && slices.Contains(strings.Split(fields[members], ","), user) {
			all = append(all, gid)
		}
	}
	return all
}

// Lines yields the fields of each line that has enough of them.
func lines(file string, fields int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(file) {
			parts := strings.Split(strings.TrimSpace(line), ":")
			if len(parts) >= fields && !strings.HasPrefix(line, "#") && !yield(parts) {
				return
			}
		}
	}
}

func parseID(text string) (int, bool) {
	const bits = 31
	number, err := strconv.ParseUint(text, 10, bits)
	return int(number), err == nil
}
