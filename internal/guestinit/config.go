// Package guestinit is the first program of a machine that runs a container image: what it is told, what it answers, and the program
// itself.
package guestinit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path"
	"strings"
	"time"
)

// ConfigEntry is the name of the entry of QEMU's fw_cfg device that has the configuration: JSON in base64, because libvirt passes commas on
// to QEMU, which takes them for the end of a value.
const ConfigEntry = "opt/io.virtclaim/run"

// Version of the configuration. A provider and an init of other versions don't understand each other.
const Version = 1

// maxConfig is a limit in bytes below that of Linux for one argument of QEMU, which has the configuration in base64.
const maxConfig = 64 << 10

const defaultStopTimeout = 10 * time.Second

// Config says what a machine runs, and on what. The provider writes it, init reads it.
type Config struct {
	Version     int               `json:"version"`
	Root        string            `json:"root"`      // serial number of the disk with the root file system
	Arguments   []string          `json:"arguments"` // the program and its arguments
	Environment map[string]string `json:"environment,omitempty"`
	// serial numbers of disks with further variables (EncodeEnvironment)
	EnvironmentDisks []string    `json:"environment_disks,omitempty"`
	User             string      `json:"user,omitempty"` // as in images: name or number, and :group; empty is root
	WorkingDirectory string      `json:"working_directory,omitempty"`
	StopSignal       string      `json:"stop_signal,omitempty"`  // SIGTERM, TERM or a number; empty is SIGTERM
	StopTimeout      int         `json:"stop_timeout,omitempty"` // seconds until SIGKILL; 0 is 10
	Hostname         string      `json:"hostname,omitempty"`
	Mounts           []Mount     `json:"mounts,omitempty"`
	Interfaces       []Interface `json:"interfaces,omitempty"` // those that are not listed use DHCP
	Restart          string      `json:"restart,omitempty"`    // RestartNever if empty
	TTY              bool        `json:"tty,omitempty"`        // the program has the console as its terminal
	Timestamps       bool        `json:"timestamps,omitempty"` // each line of output begins with its time
}

// Mount is a disk whose file system the program sees.
type Mount struct {
	Disk     string `json:"disk"` // serial number
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Format   string `json:"format,omitempty"` // FormatExt4, if a blank disk is to be formatted
}

// FormatExt4 is the file system that blank disks get.
const FormatExt4 = "ext4"

// Interface is a network interface. Without addresses it uses DHCP.
type Interface struct {
	MAC         string   `json:"mac"`
	Addresses   []string `json:"addresses,omitempty"` // with the length of the network's prefix: 10.0.0.5/24
	Gateway     string   `json:"gateway,omitempty"`
	Nameservers []string `json:"nameservers,omitempty"`
	Search      []string `json:"search,omitempty"` // domains of names without one
}

// When a program that ended is started again. One that was stopped is not.
const (
	RestartNever     = "never"
	RestartOnFailure = "on-failure"
	RestartAlways    = "always"
)

// ErrVersion is a configuration of another version than this program's.
var ErrVersion = errors.New("the configuration has another version")

// Encode checks the configuration and sets its version.
func (c Config) Encode() ([]byte, error) {
	c.Version = Version
	if err := c.Check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if len(text) > maxConfig {
		return nil,
			fmt.Errorf("what is run has %d bytes, most of them in its environment and arguments, and may have %d. Give it a file on a "+
				"disk instead", len(text), maxConfig)
	}
	return base64.StdEncoding.AppendEncode(nil, text), err
}

// Decode reads and checks a configuration.
func Decode(encoded []byte) (Config, error) {
	text, err := base64.StdEncoding.AppendDecode(nil, encoded)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	// The version comes first: what else another version has may not even decode.
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	if err := checkVersion(head.Version); err != nil {
		return Config{}, err
	}
	var c Config
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w: if the provider is newer, replace the virtclaim_kernel", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Config{}, errors.New("read the configuration: something follows it")
	}
	return c, c.Check()
}

func checkVersion(version int) error {
	if version > Version {
		return fmt.Errorf("%w: the provider is newer (version %d) than the initial RAM disk (%d). Replace the virtclaim_kernel",
			ErrVersion, version, Version)
	}
	if version != Version {
		return fmt.Errorf("%w: the initial RAM disk is newer (version %d) than the provider (%d). Replace the virtclaim_kernel",
			ErrVersion, Version, version)
	}
	return nil
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	if err := checkVersion(c.Version); err != nil {
		return err
	}
	if c.Root == "" {
		return errors.New("root: name the serial number of the root disk")
	}
	if err := c.checkProgram(); err != nil {
		return err
	}
	if err := checkHostname(c.Hostname); err != nil {
		return err
	}
	if err := c.checkMounts(); err != nil {
		return err
	}
	return c.checkInterfaces()
}

func (c Config) checkProgram() error {
	if len(c.Arguments) == 0 || c.Arguments[0] == "" {
		return errors.New("arguments: name a program: the image has no entrypoint")
	}
	for _, argument := range append([]string{c.User, c.WorkingDirectory}, c.Arguments...) {
		if strings.ContainsRune(argument, 0) {
			return fmt.Errorf("%q: remove the NUL character", argument)
		}
	}
	if err := checkEnvironment(c.Environment); err != nil {
		return err
	}
	if c.WorkingDirectory != "" && !path.IsAbs(c.WorkingDirectory) {
		return fmt.Errorf("working_directory: %q must begin with /", c.WorkingDirectory)
	}
	if _, err := ParseSignal(c.StopSignal); err != nil {
		return fmt.Errorf("stop_signal: %w", err)
	}
	if c.StopTimeout < 0 {
		return fmt.Errorf("stop_timeout: %d seconds: must not be negative", c.StopTimeout)
	}
	switch c.Restart {
	case "", RestartNever, RestartOnFailure, RestartAlways:
		return nil
	}
	return fmt.Errorf("restart: %q must be %s, %s or %s", c.Restart, RestartNever, RestartOnFailure, RestartAlways)
}

// StopPatience is how long a program may take to end after its stop signal.
func (c Config) StopPatience() time.Duration {
	if c.StopTimeout == 0 {
		return defaultStopTimeout
	}
	return time.Duration(c.StopTimeout) * time.Second
}

func checkHostname(name string) error {
	const longest = 64 // of Linux
	valid := func(r rune) bool {
		return r == '-' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if len(name) > longest || strings.ContainsFunc(name, func(r rune) bool { return !valid(r) }) {
		return fmt.Errorf("hostname: %q must have at most %d letters, digits, hyphens and dots", name, longest)
	}
	return nil
}

func (c Config) checkMounts() error {
	seen := map[string]bool{}
	for _, mount := range c.Mounts {
		if mount.Disk == "" {
			return fmt.Errorf("mounts: %s: name the serial number of the disk", mount.Path)
		}
		if !path.IsAbs(mount.Path) || path.Clean(mount.Path) != mount.Path || mount.Path == "/" || strings.ContainsRune(mount.Path, 0) {
			return fmt.Errorf("mounts: path %q must begin with /, name a folder below it, and have no superfluous parts", mount.Path)
		}
		if top := strings.SplitN(mount.Path, "/", 3)[1]; top == "proc" || top == "sys" || top == "dev" {
			return fmt.Errorf("mounts: path %q: /%s is the kernel's", mount.Path, top)
		}
		if mount.Format != "" && mount.Format != FormatExt4 {
			return fmt.Errorf("mounts: %s: format: %q must be %s", mount.Path, mount.Format, FormatExt4)
		}
		if mount.Format != "" && mount.ReadOnly {
			return fmt.Errorf("mounts: %s: a disk that is formatted can't be read-only: remove format or read_only", mount.Path)
		}
		if seen[mount.Path] {
			return fmt.Errorf("mounts: path %q is there twice", mount.Path)
		}
		seen[mount.Path] = true
	}
	return nil
}

func (c Config) checkInterfaces() error {
	seen := map[string]bool{}
	for _, i := range c.Interfaces {
		mac, err := net.ParseMAC(i.MAC)
		if err != nil {
			return fmt.Errorf("interfaces: mac: %w", err)
		}
		if seen[mac.String()] {
			return fmt.Errorf("interfaces: mac %s is there twice", mac)
		}
		seen[mac.String()] = true
		if err := i.checkAddresses(); err != nil {
			return fmt.Errorf("interfaces: %s: %w", mac, err)
		}
	}
	return nil
}

func (i Interface) checkAddresses() error {
	isIPv4 := map[bool]bool{}
	for _, address := range i.Addresses {
		prefix, err := netip.ParsePrefix(address)
		if err != nil {
			return fmt.Errorf("addresses: write an address and the length of its prefix, such as 10.0.0.5/24: %w", err)
		}
		isIPv4[prefix.Addr().Is4()] = true
	}
	if i.Gateway != "" {
		if len(i.Addresses) == 0 {
			return errors.New("gateway: needs addresses, too: without them the interface uses DHCP")
		}
		gateway, err := netip.ParseAddr(i.Gateway)
		if err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
		if !isIPv4[gateway.Is4()] {
			return fmt.Errorf("gateway: %s is of another version of IP than all addresses", gateway)
		}
	}
	for _, server := range i.Nameservers {
		if _, err := netip.ParseAddr(server); err != nil {
			return fmt.Errorf("nameservers: %w", err)
		}
	}
	for _, domain := range i.Search {
		if domain == "" || checkHostname(domain) != nil {
			return fmt.Errorf("search: %q is no domain", domain)
		}
	}
	return nil
}
