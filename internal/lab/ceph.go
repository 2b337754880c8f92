package lab

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

// cephConfiguration is the configuration of a cluster of one monitor and one OSD, which keeps its objects in memory. Its arguments are the
// cluster's id, the monitor's address and the folder. The monitor supports only version 1 of its protocol: a client with an address without
// a version tries both. The last three lines save five seconds at the start; the defaults are for several monitors that have to agree.
const cephConfiguration = `[global]
fsid = %[1]s
mon host = [v1:%[2]s]
mon initial members = a
ms bind msgr2 = false
ms bind ipv6 = false
keyring = %[3]s/keyring
run dir = %[3]s
admin socket = %[3]s/$name.asok
crash dir = %[3]s
pid file =
log file =
log to stderr = true
mon cluster log file = %[3]s/cluster.log
mon data = %[3]s/mon
mon data avail crit = 0
mon allow pool size one = true
auth allow insecure global id reclaim = false
osd data = %[3]s/osd
osd objectstore = memstore
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
memstore device bytes = 4294967296
osd mon report interval = 1
osd tick interval = 0.2
paxos propose interval = 0.05
`

// cephKeyring has the keys that the cluster is created with. The daemons read theirs there, and so do the lab's own commands, as
// client.admin.
const cephKeyring = `[mon.]
	key = %s
	caps mon = "allow *"
[osd.0]
	key = %s
	caps mon = "allow profile osd"
	caps osd = "allow *"
[client.admin]
	key = %s
	caps mon = "allow *"
	caps osd = "allow *"
[client.%s]
	key = %s
	caps mon = "profile rbd"
	caps osd = "profile rbd pool=%s"
`

// cephClientConfiguration is in /etc/ceph of the lab's hosts. Without it a wrong key is an error only after five minutes, in which libvirt
// can't operate on the domain.
const cephClientConfiguration = `[global]
client mount timeout = 5
rados mon op timeout = 5
`

// startCeph creates and starts the cluster, and waits until its pool can be used.
func (r *RBD) startCeph(ctx context.Context) error {
	cluster, osdID := uuid.NewString(), uuid.NewString()
	if err := r.writeCephFiles(cluster); err != nil {
		return err
	}
	monmap := quote(filepath.Join(r.dir, "monmap"))
	err := r.run(ctx,
		fmt.Sprintf("monmaptool --create --fsid %s --addv a '[v1:%s]' %s", cluster, r.Monitors[0], monmap),
		"ceph-mon --mkfs --id a --monmap "+monmap)
	if err != nil {
		return err
	}
	mon := startDaemon(r.sandbox, r.dir, "mon", r.withConfiguration("ceph-mon --foreground --id a"))
	err = mon.await(ctx, func(ctx context.Context) error { return r.run(ctx, "ceph --connect-timeout 3 osd new "+osdID) })
	if err != nil {
		return fmt.Errorf("start Ceph's monitor on %s: %w", r.Monitors[0], err)
	}
	if err := r.run(ctx, "ceph-osd --mkfs --id 0 --osd-uuid "+osdID); err != nil {
		return err
	}
	osd := startDaemon(r.sandbox, r.dir, "osd", r.withConfiguration("ceph-osd --foreground --id 0"))
	err = r.run(ctx,
		"ceph osd pool create "+r.Pool+" 8 8 replicated --autoscale-mode=off",
		"ceph osd pool application enable "+r.Pool+" rbd")
	if err != nil {
		return err
	}
	if err := osd.await(ctx, func(ctx context.Context) error { return r.run(ctx, "rbd ls "+r.Pool) }); err != nil {
		return fmt.Errorf("start Ceph's OSD: %w", err)
	}
	return nil
}

func (r *RBD) writeCephFiles(cluster string) error {
	for _, folder := range []string{"mon", "osd"} {
		if err := os.MkdirAll(filepath.Join(r.dir, folder), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"ceph.conf": fmt.Sprintf(cephConfiguration, cluster, r.Monitors[0], r.dir),
		"keyring":   fmt.Sprintf(cephKeyring, cephKey(), cephKey(), cephKey(), r.User, r.Key, r.Pool),
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// withConfiguration is a shell command with the cluster's configuration.
func (r *RBD) withConfiguration(command string) string {
	return "env CEPH_CONF=" + quote(filepath.Join(r.dir, "ceph.conf")) + " " + command
}

func (r *RBD) run(ctx context.Context, commands ...string) error {
	for _, command := range commands {
		if err := r.sandbox.run(ctx, r.withConfiguration(command)); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

// cephKey generates a key in Ceph's format: its type, the time, its length and 16 random bytes.
func cephKey() string {
	key := binary.LittleEndian.AppendUint16(nil, 1)
	key = binary.LittleEndian.AppendUint32(key, uint32(time.Now().Unix()))
	key = binary.LittleEndian.AppendUint32(key, 0)
	key = binary.LittleEndian.AppendUint16(key, 16)
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // it never fails
	return base64.StdEncoding.EncodeToString(append(key, secret...))
}
