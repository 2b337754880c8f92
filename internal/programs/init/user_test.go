//go:build linux

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	testPasswd = "root:x:0:0:root:/root:/bin/sh\nweb:x:101:102:Web:/home/web:/bin/false\nbroken\nodd:x:y:z:::\n# web2:x:7:7:::\n99:x:500:500::/n:\n"
	testGroup  = "root:x:0:\nweb:x:102:\nlogs:x:4:adm,web\naudio:x:29:web\nbroken\n"
)

func TestFindAccount(t *testing.T) {
	for text, want := range map[string]account{
		"":          {home: "/root"},
		"root":      {home: "/root"},
		"web":       {uid: 101, gid: 102, groups: []int{4, 29}, home: "/home/web"},
		"101":       {uid: 101, gid: 102, groups: []int{4, 29}, home: "/home/web"},
		"web:":      {uid: 101, gid: 102, groups: []int{4, 29}, home: "/home/web"},
		"web:logs":  {uid: 101, gid: 4, home: "/home/web"},
		"web:7":     {uid: 101, gid: 7, home: "/home/web"},
		"1234":      {uid: 1234, home: "/"},
		"1234:4321": {uid: 1234, gid: 4321, home: "/"},
		":logs":     {gid: 4, home: "/root"},
		"99":        {uid: 99, home: "/"}, // a number is never a name, as for container runtimes
	} {
		got, err := findAccount(text, testPasswd, testGroup)
		if difference := cmp.Diff(want, got, cmp.AllowUnexported(account{}), cmpopts.EquateEmpty()); err != nil || difference != "" {
			t.Errorf("%q: %v\n%s", text, err, difference)
		}
	}
}

func TestFindAccount_EmptyImage(t *testing.T) {
	got, err := findAccount("", "", "")
	if difference := cmp.Diff(account{home: "/"}, got, cmp.AllowUnexported(account{}), cmpopts.EquateEmpty()); err != nil || difference != "" {
		t.Errorf("%v\n%s", err, difference)
	}
}

func TestFindAccount_Refuses(t *testing.T) {
	for _, text := range []string{"nobody", "web:nobody", "-1", "4294967295", "odd", "web2"} {
		if got, err := findAccount(text, testPasswd, testGroup); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
