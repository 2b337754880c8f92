package image

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// MaxIgnition is how many bytes an Ignition configuration has at most.
const MaxIgnition = 1 << 20

var (
	butane       = regexp.MustCompile(`(?m)^["']?variant["']?\s*:`)
	beginsDigits = regexp.MustCompile(`^\d`)
)

// CheckIgnition refuses what is no Ignition configuration, without a word of it.
func CheckIgnition(config []byte) error {
	var c struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	decoded, noBase64 := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(config)))
	err := json.Unmarshal(config, &c)
	var syntax *json.SyntaxError
	switch {
	case len(config) > MaxIgnition:
		return fmt.Errorf("the configuration has %d bytes, and may have %d: let it fetch the rest, by ignition.config.merge", len(config),
			MaxIgnition)
	case isGzip(config):
		return errors.New("the configuration is compressed with gzip: Ignition takes it as it is")
	case noBase64 == nil && (isGzip(decoded) || bytes.HasPrefix(bytes.TrimSpace(decoded), []byte("{"))):
		return errors.New("the configuration is in base64: Ignition takes it as it is, so leave base64encode() or base64gzip() out")
	case err != nil && butane.Match(config):
		return errors.New("this is a Butane configuration, which Ignition does not read: transpile it with the program butane, or with " +
			"the data source ct_config of the provider poseidon/ct")
	case errors.As(err, &syntax):
		return fmt.Errorf("this is no JSON, at byte %d: an Ignition configuration is a JSON object", syntax.Offset)
	case err != nil || !beginsDigits.MatchString(c.Ignition.Version):
		return errors.New(`this is no Ignition configuration: a JSON object with "ignition": { "version": "3.4.0" }, or another version`)
	}
	return nil
}

func isGzip(b []byte) bool { return bytes.HasPrefix(b, []byte{0x1f, 0x8b}) }

// Ignition returns the content of a disk with an Ignition configuration, in whole sectors of any disk. JSON may end with spaces.
func Ignition(config []byte) ([]byte, error) {
	const sector = 4096
	return append(bytes.Clone(config), bytes.Repeat([]byte(" "), (sector-len(config)%sector)%sector)...), CheckIgnition(config)
}
