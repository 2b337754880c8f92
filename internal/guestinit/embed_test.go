package guestinit

import (
	"bytes"
	"debug/elf"
	"errors"
	"testing"
)

func TestBinary(t *testing.T) {
	const most = 6 << 20
	for architecture, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		program, err := Binary(architecture)
		if err != nil {
			t.Fatal(err) // of a checkout: make test-unit builds them
		}
		file, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			t.Fatal(err)
		}
		if libraries, err := file.ImportedLibraries(); file.Machine != machine || len(libraries) > 0 || len(program) > most {
			t.Errorf("init for %s: %v, libraries %q (%v), %d bytes", architecture, file.Machine, libraries, err, len(program))
		}
	}
}

func TestBinary_Unknown(t *testing.T) {
	for _, architecture := range []string{"riscv64", "", "../x"} {
		if _, err := Binary(architecture); !errors.Is(err, ErrNotBuilt) {
			t.Errorf("%q: %v", architecture, err)
		}
	}
}
