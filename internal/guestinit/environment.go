package guestinit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

const environmentHead = "virtclaim environment 1\n"

// MaxEnvironment is how many bytes a disk with environment variables has at most.
const MaxEnvironment = 256 << 10

// EncodeEnvironment returns the content of a disk with environment variables.
func EncodeEnvironment(variables map[string]string) ([]byte, error) {
	if err := checkEnvironment(variables); err != nil {
		return nil, err
	}
	text, err := json.Marshal(variables)
	if len(environmentHead)+len(text) > MaxEnvironment {
		return nil, fmt.Errorf("the variables have %d bytes, and may have %d", len(text), MaxEnvironment)
	}
	return append([]byte(environmentHead), text...), err
}

// DecodeEnvironment reads the beginning of a disk with environment variables. Its errors have none of them.
func DecodeEnvironment(disk []byte) (map[string]string, error) {
	text, found := bytes.CutPrefix(bytes.TrimRight(disk, "\x00"), []byte(environmentHead))
	if !found {
		return nil, errors.New("there are no environment variables on it: give it those of a virtclaim_disk with source.environment")
	}
	var variables map[string]string
	if json.Unmarshal(text, &variables) != nil {
		return nil, errors.New("its environment variables can't be read")
	}
	return variables, nil
}

// checkEnvironment refuses what the kernel would take for something else. Its error has no value.
func checkEnvironment(variables map[string]string) error {
	for name, value := range variables {
		if name == "" || bytes.ContainsAny([]byte(name), "=\x00") || bytes.ContainsRune([]byte(value), 0) {
			return fmt.Errorf("environment: %q can't be a variable: its name may have no = , and neither part a NUL character", name)
		}
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("environment: the value of %q is no text (UTF-8). Encode it, with base64 for example, or give it to the "+
				"program as a file", name)
		}
	}
	return nil
}
