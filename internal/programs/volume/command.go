package volume

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

const usage = `virtclaim-volume fills a claim that is mounted in its pod, keeps it mounted, or serves disks over iSCSI.

  virtclaim-volume upload [flags]             take an image by PUT /volume
  virtclaim-volume copy [flags] IMAGE         take the disk of a container image
  virtclaim-volume erase [flags]              have all of the claim read as zeros
  virtclaim-volume stream [flags] IMAGE...    serve the disks of container images over iSCSI, read-only
  virtclaim-volume provision [flags]          make volumes by PUT /volume, and serve them over iSCSI
  virtclaim-volume hold                       do nothing until it is ended: Kubernetes mounts the claim meanwhile
  virtclaim-volume version                    print the version

Add -help to each for its flags.
`

// terminationLog is the default terminationMessagePath of a container.
const terminationLog = "/dev/termination-log"

// Run runs a command until it is done or the context ends, and returns the exit code. out gets a line for each event.
func Run(ctx context.Context, args []string, version string, out io.Writer) int {
	log := func(line string) { _, _ = fmt.Fprintln(out, line) }
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	var err error
	switch command {
	case "upload":
		err = runUpload(ctx, args[1:], out, log)
	case "copy":
		err = runCopy(ctx, args[1:], out, log)
	case "erase":
		err = runErase(ctx, args[1:], out, log)
	case "stream":
		err = runStream(ctx, args[1:], out, log)
	case "provision":
		err = runProvision(ctx, args[1:], out, log)
	case "hold":
		<-ctx.Done()
	case "version":
		log(version)
	case "help", "-help", "--help", "-h":
		_, _ = fmt.Fprint(out, usage)
	default:
		err = fmt.Errorf("there is no command %q: upload, copy, erase, stream, provision or hold", command)
	}
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		said := oneLine(err.Error())
		log("error: " + said)
		writeTerminationMessage(said)
		if errors.Is(err, ErrFilled) {
			return podwire.ExitFilled
		}
		return 1
	}
	return 0
}

// flags are those of the commands that write to a claim.
func flags(name string, out io.Writer) (set *flag.FlagSet, c *Claim) {
	set, c = flag.NewFlagSet(name, flag.ContinueOnError), &Claim{}
	set.SetOutput(out)
	set.StringVar(&c.Path, "volume", podwire.Path, "where the claim is mounted: its mountPath or devicePath")
	return set, c
}

// fillFlags are flags with those of the commands that put an image into a claim.
func fillFlags(name string, out io.Writer) (set *flag.FlagSet, c *Claim) {
	set, c = flags(name, out)
	set.StringVar(&c.Scratch, "scratch", "", "a folder for parts of a qcow2 image that come before their turn, such as an emptyDir")
	set.BoolVar(&c.Overwrite, "overwrite", false, "overwrite what is in the claim")
	return set, c
}

func runUpload(ctx context.Context, args []string, out io.Writer, log func(string)) error {
	set, claim := fillFlags("upload", out)
	var a access
	a.flags(set, "")
	listen := set.String("listen", ":8443", "the address")
	checksum := set.String("checksum", "", "refuse other images than that with this checksum, as sha256:hex or sha512:hex of what is sent")
	once := set.Bool("once", false, "end once the volume is filled")
	if err := set.Parse(args); err != nil {
		return err
	}
	if err := image.CheckChecksum(*checksum); err != nil {
		return err
	}
	token, config, pin, err := a.open("fill the volume")
	if err != nil {
		return err
	}
	s := &Server{Claim: *claim, Token: token, Checksum: *checksum, Log: log, Done: func(f podwire.Filled) { filled(f, log) }}
	log(fmt.Sprintf("waits at %s for the image; to check this server with curl: --insecure --pinnedpubkey %s", *listen, pin))
	defer report(log, &s.bytes)()
	return upload(ctx, s, *listen, config, *once)
}

func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("there is no token in %s", path)
	}
	return token, nil
}

func runCopy(ctx context.Context, args []string, out io.Writer, log func(string)) error {
	set, claim := fillFlags("copy", out)
	at := set.String("path", "", "the path of the disk in the image; without it, the only file below /disk")
	arch := set.String("arch", runtime.GOARCH, "the architecture, if the image has several")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() != 1 {
		return errors.New("name one container image after the flags, as repository:tag or repository@sha256:hex")
	}
	f, err := claim.copyImage(ctx, image.Container{Reference: set.Arg(0), Path: *at, Arch: *arch}, log)
	if err == nil {
		filled(f, log)
	}
	return err
}

func runErase(ctx context.Context, args []string, out io.Writer, log func(string)) error {
	set, claim := flags("erase", out)
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() != 0 {
		return fmt.Errorf("erase has only flags, and no %q", set.Arg(0))
	}
	var written atomic.Int64
	defer report(log, &written)()
	size, err := claim.erase(ctx, &written)
	if err == nil {
		said := fmt.Sprintf("erased: %d bytes read as zeros", size)
		log(said)
		writeTerminationMessage(said)
	}
	return err
}

func runStream(ctx context.Context, args []string, out io.Writer, log func(string)) error {
	set := flag.NewFlagSet("stream", flag.ContinueOnError)
	set.SetOutput(out)
	s := stream{log: log}
	s.target.Log = warn(log)
	set.StringVar(&s.folder, "scratch", "/scratch", "a folder for the disks, such as an emptyDir")
	set.StringVar(&s.target.Name, "name", "",
		"the name of the iSCSI target, which no other may have, such as iqn.2026-01.org.example:golden")
	listen := set.String("listen", ":3260", "the address")
	chap := set.String("chap", "", "a folder with what initiators must log in with: a mounted Secret of the type kubernetes.io/iscsi-chap")
	at := set.String("path", "", "the path of the disk in each image; without it, the only file below /disk")
	arch := set.String("arch", runtime.GOARCH, "the architecture, if an image has several")
	set.Func("initiator", "the name of an initiator that may log in, and may be given again; without it, any may", func(name string) error {
		s.target.Initiators = append(s.target.Initiators, name)
		return nil
	})
	set.IntVar(&s.target.MaxSessions, "max-sessions", 1024, "how many initiators there may be: one for each disk of each running machine")
	if err := set.Parse(args); err != nil {
		return err
	}
	if s.target.MaxSessions < 1 {
		return fmt.Errorf("-max-sessions is %d, and should be at least 1", s.target.MaxSessions)
	}
	if set.NArg() == 0 {
		return errors.New("name container images after the flags, as repository:tag or repository@sha256:hex")
	}
	if s.target.Name == "" {
		return errors.New("hosts know a disk by the name of its target and its LUN: give a -name that no other target has, such as " +
			"iqn.2026-01.org.example:golden")
	}
	for _, reference := range set.Args() {
		s.images = append(s.images, image.Container{Reference: reference, Path: *at, Arch: *arch})
	}
	var err error
	if s.target.CHAP, err = login(*chap); err != nil {
		return err
	}
	return s.serve(ctx, *listen)
}

// warn prints the errors of a target.
func warn(log func(string)) func(error) {
	return func(err error) { log("warning: " + oneLine(err.Error())) }
}

func filled(f podwire.Filled, log func(string)) {
	log(fmt.Sprintf("filled with %d bytes of a %s image, %s", f.Capacity, f.Format, f.Digest))
	text, _ := json.Marshal(f)
	writeTerminationMessage(string(text))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// writeTerminationMessage writes what Kubernetes shows of the container when it has ended: Filled as JSON, or a text. There is no such file
// outside of Kubernetes.
func writeTerminationMessage(said string) {
	path := cmp.Or(os.Getenv("TERMINATION_LOG"), terminationLog)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0) //nolint:gosec // the pod's spec names the file
	if err != nil {
		return
	}
	_, _ = file.WriteString(said + "\n")
	_ = file.Close()
}

// reportEvery is how often a line says how much is written.
const reportEvery = 10 * time.Second

// report prints how much is written, until the returned function is called.
func report(log func(string), written *atomic.Int64) (stop func()) {
	ended := make(chan struct{})
	go func() {
		last := int64(0)
		for {
			select {
			case <-time.After(reportEvery):
			case <-ended:
				return
			}
			if now := written.Load(); now != last {
				log(fmt.Sprintf("%d MiB of the disk are written", now>>20))
				last = now
			}
		}
	}()
	return func() { close(ended) }
}
