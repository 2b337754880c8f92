//go:build acc

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

// What the probe of testdata says.
type report struct {
	UID, GID  int
	Groups    []int
	Variables []string
	Folder    string
	Hostname  string
	Files     map[string]string
	Addresses []string
	RootMiB   uint64
	Failures  []string
}

// A guest is a machine for one boot, without libvirt and KVM.
type guest struct {
	config    guestinit.Config
	files     map[string]string // of the root file system, beside the probe
	links     map[string]string
	grownTo   int64    // size of the root disk, if it is larger than its file system
	devices   []string // more arguments of QEMU
	powerDown bool     // when the probe is ready
}

type outcome struct {
	console string
	status  guestinit.Status
	report  report
	root    string
	stopped bool
}

const (
	bootPatience = 90 * time.Second
	// What makes a boot without acceleration faster is in the second half.
	parameters = "console=ttyS0 quiet panic=-1 no_timer_check cryptomgr.notests rodata=off"
)

// hardware is that of a guest with a root disk, in QEMU's words.
func hardware(kernel, initrd, root, config string) []string {
	return []string{
		"-M", "pc,accel=tcg", "-m", "96", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", kernel, "-initrd", initrd,
		"-append", parameters, "-fw_cfg", "name=" + guestinit.ConfigEntry + ",file=" + config,
		"-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n,mac=52:54:00:00:00:01",
		"-drive", "file=" + root + ",format=raw,if=none,id=r,cache=unsafe", "-device", "virtio-blk-pci,drive=r,serial=root",
	}
}

// boot runs the guest until it is off.
func (g guest) boot(t *testing.T, artefacts *artefacts) outcome {
	t.Helper()
	folder := t.TempDir()
	root := filepath.Join(folder, "root.img")
	g.makeRoot(t, artefacts, folder, root)
	o := observe(t, root, g.run(t, artefacts, folder, root))
	o.stopped = g.powerDown
	return o
}

// run is boot with that root disk. It returns what the console has.
func (g guest) run(t *testing.T, artefacts *artefacts, folder, root string) string {
	t.Helper()
	g.config.Root = "root"
	text, err := g.config.Encode()
	if err != nil {
		t.Fatal(err)
	}
	configFile := filepath.Join(folder, "config.json")
	if err := os.WriteFile(configFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	monitor := filepath.Join(folder, "monitor")
	arguments := slices.Concat(hardware(artefacts.kernel, artefacts.initrd, root, configFile),
		[]string{"-monitor", "unix:" + monitor + ",server=on,wait=off"}, g.devices)
	ctx, cancel := context.WithTimeout(t.Context(), bootPatience)
	defer cancel()
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64", arguments...)
	output, err := qemu.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	qemu.Stderr = os.Stderr
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	console := g.follow(t, output, monitor)
	if err := qemu.Wait(); err != nil {
		t.Fatalf("%v; the console:\n%s", err, console)
	}
	return console
}

// follow reads the console to its end.
func (g guest) follow(t *testing.T, output io.Reader, monitor string) string {
	t.Helper()
	var console strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		console.WriteString(strings.TrimRight(lines.Text(), "\r") + "\n")
		if g.powerDown && strings.Contains(lines.Text(), "probe is ready") {
			pressPowerButton(t, monitor)
		}
	}
	return console.String()
}

func pressPowerButton(t *testing.T, monitor string) {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "unix", monitor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := io.WriteString(connection, "system_powerdown\n"); err != nil {
		t.Fatal(err)
	}
}

func observe(t *testing.T, root, console string) outcome {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the console:\n%s", console)
		}
	})
	disk, err := os.ReadFile(root)
	if err != nil {
		t.Fatal(err)
	}
	status, found := guestinit.ParseStatus(disk)
	if !found {
		t.Fatalf("the root disk has no status: %q", disk[:64])
	}
	if strings.Contains(console, "Kernel panic") {
		t.Error("the kernel has panicked")
	}
	checked, err := exec.CommandContext(t.Context(), "e2fsck", "-fn", root).CombinedOutput()
	if err != nil || bytes.Contains(checked, []byte("recovering journal")) {
		t.Errorf("the root file system was not left clean: %v: %s", err, checked)
	}
	o := outcome{console: console, status: status, root: root}
	for line := range strings.Lines(console) {
		if text, found := strings.CutPrefix(line, "REPORT"); found {
			if err := json.Unmarshal([]byte(text), &o.report); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

func (o outcome) mustExit(t *testing.T, code int) {
	t.Helper()
	is := o.status
	is.Output = "" // of which there is more on the console
	if want := (guestinit.Status{State: guestinit.Exited, ExitCode: code, Ended: !o.stopped}); is != want {
		t.Errorf("the status is %+v, and should be %+v", is, want)
	}
}

func (o outcome) mustSay(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(o.console, text) {
		t.Errorf("the console does not say %q", text)
	}
}

// A scratch image has one program and nothing else; what there is of files is seen by it, and its exit code by the provider.
func TestAccInit_ScratchImage(t *testing.T) {
	a := makeArtefacts(t)
	o := guest{
		config: guestinit.Config{
			Arguments: []string{"/probe", "report", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}, User: "1234", Hostname: "web.example.org",
			Environment: map[string]string{"COLOUR": "light blue"}, WorkingDirectory: "/work/here", TTY: true,
		},
		grownTo: 200 << 20,
	}.boot(t, a)
	o.mustExit(t, 0)
	o.mustSay(t, `virtclaim: starting "/probe" as 1234:0`)
	r := o.report
	if r.UID != 1234 || r.GID != 0 || r.Folder != "/work/here" || r.Hostname != "web.example.org" || len(r.Failures) > 0 {
		t.Errorf("the program saw %+v", r)
	}
	for _, want := range []string{"COLOUR=light blue", "HOME=/", "PATH=" + defaultPath, "HOSTNAME=web.example.org"} {
		if !slices.Contains(r.Variables, want) {
			t.Errorf("%s is missing in %q", want, r.Variables)
		}
	}
	if len(r.Variables) != 4 {
		t.Errorf("there is more in the environment: %q", r.Variables)
	}
	if r.Files["/etc/hostname"] != "web.example.org\n" || !strings.Contains(r.Files["/etc/hosts"], "127.0.1.1\tweb.example.org web\n") {
		t.Errorf("the files are %q", r.Files)
	}
	// QEMU's own network.
	if !slices.Contains(r.Addresses, "10.0.2.15/24") || !strings.Contains(r.Files["/etc/resolv.conf"], "nameserver 10.0.2.3\n") {
		t.Errorf("the addresses are %q, and the files %q", r.Addresses, r.Files)
	}
	if r.RootMiB < 150 {
		t.Errorf("the root file system has %d MiB", r.RootMiB)
	}
}

// Names of users and groups, a fixed address, a dangling resolv.conf, another disk.
func TestAccInit_Image(t *testing.T) {
	a := makeArtefacts(t)
	data := makeFileSystem(t, map[string]string{"greeting": "hello"})
	o := guest{
		config: guestinit.Config{
			Arguments: []string{"probe", "report", "/etc/resolv.conf", "/var/lib/data/greeting"}, User: "web",
			Environment: map[string]string{"PATH": "/nowhere:/opt"},
			Mounts:      []guestinit.Mount{{Disk: "data", Path: "/var/lib/data", ReadOnly: true}},
			Interfaces: []guestinit.Interface{{
				MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.2.77/24", "fd00::77/64"}, Gateway: "10.0.2.2", Nameservers: []string{"10.0.2.3"},
				Search: []string{"example.org"},
			}},
		},
		files: map[string]string{
			"etc/passwd": "root:x:0:0::/root:/bin/sh\nweb:x:101:102:Web:/home/web:/bin/false\n",
			"etc/group":  "web:x:102:\nlogs:x:4:adm,web\n",
		},
		links:   map[string]string{"etc/resolv.conf": "/run/systemd/resolve/stub-resolv.conf", "opt/probe": "/probe", "var": "/other"},
		devices: []string{"-drive", "file=" + data + ",format=raw,if=none,id=d", "-device", "virtio-scsi-pci", "-device", "scsi-hd,drive=d,serial=data"},
	}.boot(t, a)
	o.mustExit(t, 0)
	o.mustSay(t, `as 101:102`)
	r := o.report
	if r.UID != 101 || r.GID != 102 || !slices.Equal(r.Groups, []int{4}) || !slices.Contains(r.Variables, "HOME=/home/web") || len(r.Failures) > 0 {
		t.Errorf("the program saw %+v", r)
	}
	if r.Files["/etc/resolv.conf"] != resolvFile([]string{"10.0.2.3"}, []string{"example.org"}) || r.Files["/var/lib/data/greeting"] != "hello" {
		t.Errorf("the files are %q", r.Files)
	}
	if !slices.Contains(r.Addresses, "10.0.2.77/24") || !slices.Contains(r.Addresses, "fd00::77/64") {
		t.Errorf("the addresses are %q", r.Addresses)
	}
}

// checkFileSystem expects a sound ext4 with that many MiB for files at least.
func checkFileSystem(t *testing.T, disk string, mebibytes uint64) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "e2fsck", "-fn", disk).CombinedOutput(); err != nil || bytes.Contains(out, []byte("recovering journal")) {
		t.Errorf("the file system was not left clean: %v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "dumpe2fs", "-h", disk).CombinedOutput()
	if err != nil {
		t.Fatalf("dumpe2fs: %v: %s", err, out)
	}
	free := regexp.MustCompile(`Free blocks: +(\d+)`).FindSubmatch(out)
	if blocks, err := strconv.ParseUint(string(free[1]), 10, 64); err != nil || blocks>>8 < mebibytes {
		t.Errorf("%d MiB are free, and should be at least %d: %v", blocks>>8, mebibytes, err)
	}
}

// A blank disk is formatted once, whatever its size, and grows; one with anything on it is not written to.
func TestAccInit_Format(t *testing.T) {
	a := makeArtefacts(t)
	folder := t.TempDir()
	small, large := filepath.Join(folder, "small"), filepath.Join(folder, "large")
	root := filepath.Join(folder, "root.img")
	resize := func(path string, size int64) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Truncate(size), file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	resize(small, 64<<20)
	resize(large, 100<<30)
	g := guest{
		config: guestinit.Config{
			Arguments: []string{"/probe", "report", "/etc/resolv.conf", "/data/kept", "/data/large"},
			Mounts: []guestinit.Mount{
				{Disk: "small", Path: "/data", Format: guestinit.FormatExt4}, {Disk: "large", Path: "/data/large", Format: guestinit.FormatExt4},
			},
			Interfaces: []guestinit.Interface{{MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.2.77/24"}}},
		},
		devices: []string{
			"-drive", "file=" + small + ",format=raw,if=none,id=s", "-device", "virtio-blk-pci,drive=s,serial=small",
			"-drive", "file=" + large + ",format=raw,if=none,id=l", "-device", "virtio-blk-pci,drive=l,serial=large",
		},
	}
	g.makeRoot(t, a, folder, root)
	first := observe(t, root, g.run(t, a, folder, root))
	first.mustExit(t, 0)
	first.mustSay(t, "the disk for /data was blank, and has an ext4 now")
	first.mustSay(t, "the disk for /data/large was blank")
	if first.report.Files["/etc/resolv.conf"] != resolvFile(nil, nil) {
		t.Errorf("the files are %q", first.report.Files)
	}
	checkFileSystem(t, small, 56)
	checkFileSystem(t, large, 99<<10-1600)
	if out, err := exec.CommandContext(t.Context(), "debugfs", "-w", "-R", "symlink kept large", small).CombinedOutput(); err != nil {
		t.Fatalf("debugfs: %v: %s", err, out)
	}
	resize(small, 300<<20)
	second := observe(t, root, g.run(t, a, folder, root))
	second.mustExit(t, 0)
	second.mustSay(t, "the file system on /data has grown from")
	if strings.Contains(second.console, "was blank") || strings.Contains(second.console, "on /data/large has grown") {
		t.Errorf("at the next start, the console is\n%s", second.console)
	}
	checkFileSystem(t, small, 280)
	if out, err := exec.CommandContext(t.Context(), "debugfs", "-R", "ls -p /", small).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("/kept/")) {
		t.Errorf("it was formatted again: %v: %s", err, out)
	}
}

func TestAccInit_FormatRefused(t *testing.T) {
	a := makeArtefacts(t)
	disk, content := filepath.Join(t.TempDir(), "stray"), make([]byte, 64<<20)
	content[len(content)-7] = 'x'
	if err := os.WriteFile(disk, content, 0o600); err != nil {
		t.Fatal(err)
	}
	o := guest{
		config: guestinit.Config{
			Arguments: []string{"/probe"}, Mounts: []guestinit.Mount{{Disk: "stray", Path: "/data", Format: guestinit.FormatExt4}},
		},
		devices: []string{"-drive", "file=" + disk + ",format=raw,if=none,id=s", "-device", "virtio-blk-pci,drive=s,serial=stray"},
	}.boot(t, a)
	if o.status.State != guestinit.Failed || !strings.Contains(o.status.Message, "is not blank: there is something in the 512 bytes from 67108352 on") {
		t.Errorf("the status is %+v", o.status)
	}
	if after, err := os.ReadFile(disk); err != nil || !bytes.Equal(after, content) {
		t.Errorf("the disk was written to: %v", err)
	}
}

func TestAccInit_ExitCode(t *testing.T) {
	a := makeArtefacts(t)
	for _, try := range []struct {
		name      string
		arguments []string
		code      int
	}{
		{"code", []string{"/probe", "exit", "3"}, 3},
		{"signal", []string{"/probe", "kill"}, 137},
		{"signals to init", []string{"/probe", "hangup"}, 0},
	} {
		t.Run(try.name, func(t *testing.T) {
			guest{config: guestinit.Config{Arguments: try.arguments}}.boot(t, a).mustExit(t, try.code)
		})
	}
}

// What can't be started is a status that says why, and a machine that is off.
func TestAccInit_Failed(t *testing.T) {
	a := makeArtefacts(t)
	blank := filepath.Join(t.TempDir(), "blank")
	if err := os.WriteFile(blank, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		name   string
		config guestinit.Config
		files  map[string]string
		want   string
	}{
		{"entrypoint", guestinit.Config{Arguments: []string{"nginx"}}, nil, `entrypoint "nginx": file does not exist`},
		{"script", guestinit.Config{Arguments: []string{"/start"}}, map[string]string{"start": "#!/bin/sh\n"}, "/start needs /bin/sh"},
		{"disk", guestinit.Config{Arguments: []string{"/probe"}, Mounts: []guestinit.Mount{{Disk: "root2", Path: "/data"}}}, nil, `serial number "root2"`},
		{"blank", guestinit.Config{Arguments: []string{"/probe"}, Mounts: []guestinit.Mount{{Disk: "blank", Path: "/data"}}}, nil, "if it is blank, set format"},
		{"too small", guestinit.Config{
			Arguments: []string{"/probe"}, Mounts: []guestinit.Mount{{Disk: "blank", Path: "/data", Format: guestinit.FormatExt4}},
		}, nil, "must have between"},
	} {
		t.Run(try.name, func(t *testing.T) {
			o := guest{config: try.config, files: try.files, devices: []string{
				"-drive", "file=" + blank + ",format=raw,if=none,id=b", "-device", "virtio-blk-pci,drive=b,serial=blank",
			}}.boot(t, a)
			if o.status.State != guestinit.Failed || !strings.Contains(o.status.Message, try.want) {
				t.Errorf("the status is %+v, and should say %q", o.status, try.want)
			}
			o.mustSay(t, "virtclaim: "+o.status.Message)
		})
	}
}

// A root disk that is no ext4 has its data in the first sector.
func TestAccInit_OtherRootStaysAsItIs(t *testing.T) {
	a := makeArtefacts(t)
	folder := t.TempDir()
	root, content := filepath.Join(folder, "root.img"), append([]byte("XFSB"), bytes.Repeat([]byte("data"), 1<<18)...)
	if err := os.WriteFile(root, content, 0o600); err != nil {
		t.Fatal(err)
	}
	console := guest{config: guestinit.Config{Arguments: []string{"/probe", "exit", "0"}}}.run(t, a, folder, root)
	if !strings.Contains(console, "virtclaim: root disk: mount /dev/vda as ext4") {
		t.Errorf("the console is\n%s", console)
	}
	if after, err := os.ReadFile(root); err != nil || !bytes.Equal(after, content) {
		t.Errorf("the disk was written to (%v): %q", err, after[:64])
	}
}

// A shutdown by the host is the program's stop signal.
func TestAccInit_PowerButton(t *testing.T) {
	a := makeArtefacts(t)
	o := guest{config: guestinit.Config{
		Arguments: []string{"/probe", "await"}, StopSignal: "SIGUSR1", Restart: guestinit.RestartAlways,
	}, powerDown: true}.boot(t, a)
	o.mustExit(t, 7)
}

func TestAccInit_StopTimeout(t *testing.T) {
	a := makeArtefacts(t)
	o := guest{config: guestinit.Config{Arguments: []string{"/probe", "ignore"}, StopTimeout: 1}, powerDown: true}.boot(t, a)
	o.mustExit(t, 137)
	o.mustSay(t, "has not ended within 1s")
}

// What the program has left behind does not keep the next run's port.
func TestAccInit_RestartOnFailure(t *testing.T) {
	a := makeArtefacts(t)
	o := guest{config: guestinit.Config{Arguments: []string{"/probe", "flaky"}, Restart: guestinit.RestartOnFailure}}.boot(t, a)
	o.mustExit(t, 0)
	if runs := strings.Count(o.console, "starting"); runs != 3 {
		t.Errorf("the program ran %d times", runs)
	}
}

// A network without a server is printed, and keeps neither the program nor other interfaces.
func TestAccInit_NoDHCPServer(t *testing.T) {
	a := makeArtefacts(t)
	o := guest{
		config:  guestinit.Config{Arguments: []string{"/probe", "report"}},
		devices: []string{"-netdev", "hubport,id=h,hubid=1", "-device", "virtio-net-pci,netdev=h"},
	}.boot(t, a)
	o.mustExit(t, 0)
	o.mustSay(t, "no DHCP server has answered")
	if !slices.Contains(o.report.Addresses, "10.0.2.15/24") {
		t.Errorf("the addresses are %q", o.report.Addresses)
	}
}
