//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

const configFile = "/sys/firmware/qemu_fw_cfg/by_name/" + guestinit.ConfigEntry + "/raw"

func readConfig() (guestinit.Config, error) {
	text, err := os.ReadFile(configFile)
	if errors.Is(err, os.ErrNotExist) {
		return guestinit.Config{}, fmt.Errorf("the machine has no configuration: %s is missing: give QEMU an entry %s of fw_cfg, and the "+
			"kernel its module qemu_fw_cfg", configFile, guestinit.ConfigEntry)
	}
	if err != nil {
		return guestinit.Config{}, fmt.Errorf("read the machine's configuration: %w", err)
	}
	return guestinit.Decode(text)
}
