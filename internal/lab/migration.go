package lab

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// migrationQEMU has guests move to a host over loopback, because its name resolves nowhere. libvirtd refuses 127.0.0.1 for that. The
// arguments are the first port and the last.
const migrationQEMU = `migration_host = "127.0.0.2"
migration_port_min = %d
migration_port_max = %d
`

// The ports for migrations, of which each host has that many, are between 11000 and 16500: below libvirtd's own and those of freePort.
const (
	firstMigrationPort = 11_000
	migrationPorts     = 32
	migrationRanges    = 170
)

// letMigrate has hosts of one network accept each other's guests. Their ports differ, because libvirtd only tries whether one is free, and
// QEMU takes it later: two guests that move at once could be given the same one.
func letMigrate(hosts map[string]*Host) {
	number := rand.IntN(migrationRanges) //nolint:gosec // other labs should have other ports
	for _, h := range hosts {
		first := firstMigrationPort + migrationPorts*(number%migrationRanges)
		h.qemu += fmt.Sprintf(migrationQEMU, first, first+migrationPorts-1)
		number++
	}
}

// MigrationURI is a host's URI, also through a tap, for the libvirtd of another host: without its transport, that one takes it as its own.
func MigrationURI(uri string) string { return strings.Replace(uri, "qemu:", "qemu+unix:", 1) }
