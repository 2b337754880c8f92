//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplainRefusal_CarriageReturn(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		refusal error
		want    string
	}{
		"a missing interpreter":             {"#! /bin/sh -e\nexit\n", unix.ENOENT, "needs /bin/sh, which the image does not have"},
		"a carriage return":                 {"#!/bin/sh\r\nexit\r\n", unix.ENOENT, `'s first line ends with a carriage return (CR LF), so that the kernel looks for "/bin/sh\r". Save it with LF`},
		"one after an interpreter's option": {"#!/usr/bin/env sh\r\n", unix.ENOENT, "needs /usr/bin/env, which the image does not have"},
		"no interpreter":                    {"exit\n", unix.ENOEXEC, "is no program"},
		"another refusal":                   {"#!/bin/sh\r\n", unix.EACCES, "permission denied"},
	} {
		path := filepath.Join(t.TempDir(), "entry.sh")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := explainRefusal(path, c.refusal); !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
