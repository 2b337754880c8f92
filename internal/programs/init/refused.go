//go:build linux

package main

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

var architectures = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64",
	elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x", elf.EM_LOONGARCH: "loong64", elf.EM_MIPS: "mips",
}

// explainRefusal says why the kernel did not execute a program that exists: its own words are about the file, and mean what that names.
func explainRefusal(path string, refusal error) error {
	interpreter, architecture := inspectProgram(path)
	switch {
	case architecture != "" && architecture != runtime.GOARCH:
		return fmt.Errorf("%s is for %s, and this machine is %s: use the image for %s", path, architecture, runtime.GOARCH, runtime.GOARCH)
	case errors.Is(refusal, unix.ENOENT) && strings.HasSuffix(interpreter, "\r"):
		return fmt.Errorf("%s's first line ends with a carriage return (CR LF), so that the kernel looks for %q. Save it with LF", path,
			interpreter)
	case errors.Is(refusal, unix.ENOENT) && interpreter != "":
		return fmt.Errorf("%s needs %s, which the image does not have", path, interpreter)
	case errors.Is(refusal, unix.ENOEXEC):
		return fmt.Errorf("%s is no program: it has neither an ELF header nor a first line with #! and an interpreter: %w", path, refusal)
	}
	return fmt.Errorf("%s: %w", path, refusal)
}

// inspectProgram returns what runs a program, and what it runs on, as far as the file says it.
func inspectProgram(path string) (interpreter, architecture string) {
	file, err := os.Open(path)
	if err != nil {
		return "", ""
	}
	defer file.Close() //nolint:errcheck // it was only read
	program, err := elf.NewFile(file)
	if err != nil {
		return scriptInterpreter(file), ""
	}
	architecture, known := architectures[program.Machine]
	if !known {
		architecture = program.Machine.String()
	}
	for _, part := range program.Progs {
		const longest = 4096
		if part.Type == elf.PT_INTERP {
			name, _ := io.ReadAll(io.LimitReader(part.Open(), longest))
			return strings.TrimRight(string(name), "\x00"), architecture
		}
	}
	return "", architecture
}

func scriptInterpreter(file io.ReaderAt) string {
	const longest = 256 // of the kernel
	line, _ := bufio.NewReader(io.NewSectionReader(file, 0, longest)).ReadString('\n')
	rest, found := strings.CutPrefix(line, "#!")
	isEnd := func(r rune) bool { return strings.ContainsRune(" \t\n\x00", r) } // for the kernel, a carriage return is a part of the name
	if fields := strings.FieldsFunc(rest, isEnd); found && len(fields) > 0 {
		return fields[0]
	}
	return ""
}
