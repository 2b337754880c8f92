package volume

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/iscsi"
)

// provisionServer makes and removes volumes by requests.
type provisionServer struct {
	provisioner
	access
	// host and port are where initiators find the target; secret is the name of the Secret that they log in with, initiator their own name.
	host, port, secret, initiator string
	token                         string
	// turn is taken by the request that is being answered.
	turn chan struct{}
}

// mounted is where the provider mounts the Secret of a pod that it makes; another folder in tests.
var mounted = podwire.SecretPath

// ifMounted is a file or folder with the file in it, or empty if there is none.
func ifMounted(path, file string) string {
	if _, err := os.Stat(filepath.Join(path, file)); err != nil {
		return ""
	}
	return path
}

func runProvision(ctx context.Context, args []string, out io.Writer, log func(string)) (err error) {
	set := flag.NewFlagSet("provision", flag.ContinueOnError)
	set.SetOutput(out)
	s := &provisionServer{provisioner: provisioner{log: log}, turn: make(chan struct{}, 1)}
	s.target.Log = warn(log)
	s.flags(set, ifMounted(filepath.Join(mounted, "token"), ""))
	set.StringVar(&s.folder, "folder", podwire.Path,
		"a folder for the volumes, which is made if only it is missing: where a claim with a filesystem is mounted, or one in that")
	listen := set.String("listen", ":8443", "the address for requests")
	listenISCSI := set.String("iscsi-listen", ":3260", "the address for initiators")
	portal := set.String("portal", os.Getenv("POD_IP"),
		"where initiators find the target, as host or host:port; by default POD_IP, and the port of -iscsi-listen")
	set.StringVar(&s.target.Name, "name", "",
		"the name of the iSCSI target, which no other may have; by default a random one, which stays in the folder")
	chap := set.String("chap", ifMounted(mounted, "node.session.auth.username"),
		"a folder with what initiators must log in with: a mounted Secret of the type kubernetes.io/iscsi-chap")
	set.StringVar(&s.initiator, "initiator", "", "the name with which initiators must log in, and which answers have; without it, any may")
	noCHAP := set.Bool("no-chap", false, "any initiator may read and write the volumes")
	set.StringVar(&s.secret, "chap-secret", os.Getenv("VIRTCLAIM_SECRET"), "the name of the Secret of -chap")
	set.StringVar(&s.image.Reference, "image", "", "a container image whose disk is the content of new volumes; without it, they are blank")
	set.Func("images", "what the container images begin with that requests may name, as registry.example.org/golden/; it may be given "+
		"again. Without it, they may name none", func(prefix string) error {
		if s.images = append(s.images, prefix); strings.Trim(prefix, "/") == "" || strings.Contains(prefix, "://") {
			return errors.New("write it without a scheme, as registry.example.org/golden/")
		}
		return nil
	})
	set.StringVar(&s.image.Path, "path", "", "the path of the disk in the image; without it, the only file below /disk")
	set.StringVar(&s.image.Arch, "arch", runtime.GOARCH, "the architecture, if the image has several")
	s.maxSize = image.MaxCapacity
	set.Func("max-size", "the maximal size that may be asked for, such as 100Gi",
		func(text string) (err error) { s.maxSize, err = bytesOf(text); return err })
	set.IntVar(&s.maxVolumes, "max-volumes", 256, "how many volumes there may be")
	if err := set.Parse(args); err != nil {
		return err
	}
	if s.host, s.port, err = net.SplitHostPort(*portal); err != nil {
		s.host, s.port = strings.Trim(*portal, "[]"), ""
	}
	_, err = strconv.ParseUint(cmp.Or(s.port, "0"), 10, 16)
	switch {
	case err != nil || s.host == "":
		return fmt.Errorf("-portal is %q, and should be where initiators find the target, as host or host:port. Give it, or POD_IP in "+
			"the environment (fieldRef status.podIP)", *portal)
	case s.image.Reference != "" && s.image.Check() != nil:
		return s.image.Check()
	case s.maxVolumes < 1 || s.maxVolumes > iscsi.MaxLUN+1:
		return fmt.Errorf("-max-volumes is %d, and should be from 1 to %d", s.maxVolumes, iscsi.MaxLUN+1)
	case *noCHAP:
		*chap = ""
	case *chap == "":
		return errors.New("any initiator could write the volumes: give -chap, or -no-chap if others can't reach the target")
	case s.secret == "":
		return errors.New("which Secret do initiators log in with? Give the name of that of -chap: -chap-secret, or VIRTCLAIM_SECRET in " +
			"the environment")
	}
	if s.target.CHAP, err = login(*chap); err != nil {
		return err
	}
	if s.initiator != "" {
		s.target.Initiators = []string{s.initiator}
	}
	s.target.MaxSessions = max(64, 2*s.maxVolumes) // a machine that moves has one on each host
	return s.run(ctx, *listen, *listenISCSI)
}

// run serves until the context ends. Nothing listens before all volumes are there.
func (s *provisionServer) run(ctx context.Context, listen, listenISCSI string) error {
	token, config, pin, err := s.open("make and delete volumes")
	if err != nil {
		return err
	}
	//nolint:gosec // for other users of the volume's group
	if err := os.Mkdir(s.folder, 0o770); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := s.load(); err != nil {
		return err
	}
	initiators, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listenISCSI)
	if err != nil {
		return err
	}
	requests, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return errors.Join(err, initiators.Close())
	}
	_, port, _ := net.SplitHostPort(initiators.Addr().String())
	s.token, s.port = token, cmp.Or(s.port, port)
	s.log(fmt.Sprintf("serves %d volumes of %s at %s, and waits at %s for requests; to check this server with curl: --insecure "+
		"--pinnedpubkey %s",
		len(s.volumes), s.target.Name, initiators.Addr(), requests.Addr(), pin))
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return s.target.Serve(ctx, initiators) })
	all.Go(func() error {
		return serveHTTPS(ctx, requests, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handle(ctx, w, r) }), config)
	})
	err = all.Wait()
	s.turn <- struct{}{} // and it has no end
	for _, v := range s.volumes {
		err = errors.Join(err, s.end(v))
	}
	return err
}

// handle answers a request. What it begins goes on until ctx ends, also without the client: one that repeats its request finds it.
func (s *provisionServer) handle(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	var err error
	switch {
	case r.URL.Path == podwire.HealthPath:
	case !isAuthorized(r, s.token):
		w.Header().Set("WWW-Authenticate", "Bearer")
		err = refuseWith(http.StatusUnauthorized, "%w", errNoToken)
	case r.URL.Path != podwire.Path:
		err = refuseWith(http.StatusNotFound, "there is only /volume")
	case r.Method == http.MethodPut || r.Method == http.MethodDelete:
		err = s.change(ctx, w, r)
	default:
		w.Header().Set("Allow", "PUT, DELETE")
		err = refuseWith(http.StatusMethodNotAllowed, "use PUT to make a volume, and DELETE to remove it")
	}
	if err == nil {
		return
	}
	status := statusOf(err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	s.log(fmt.Sprintf("%s by %s: %s", r.Method, r.RemoteAddr, oneLine(err.Error())))
	http.Error(w, oneLine(err.Error()), status)
}

// turnTime is how long a request waits for those before it; less in tests.
var turnTime = 10 * time.Second

func (s *provisionServer) change(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	key, size, of, err := parse(r)
	if err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-time.After(turnTime):
		return refuseWith(http.StatusServiceUnavailable, "another volume is being made or removed. Ask again")
	}
	if r.Method == http.MethodDelete {
		if err := s.remove(key); err != nil {
			return err
		}
		s.log(fmt.Sprintf("there is no volume of the key %q any more", key))
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	v, isNew, err := s.put(ctx, key, size, of, r.Header.Get("If-Match") == "")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/yaml")
	if isNew {
		s.log(fmt.Sprintf("LUN %d is a new volume of %d bytes, of the key %q", v.LUN, v.disk.Size(), key))
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = io.WriteString(w, s.source(v)) // the client may be gone
	return nil
}

// source is the volume source of a PersistentVolume, or nearly so.
func (s *provisionServer) source(v *provisioned) string {
	text := fmt.Sprintf("iscsi:\n  host: {name: %+q, port: %s}\n  portal: %+q\n  lun: %d\n", s.host, s.port, s.target.Name, v.LUN)
	if s.initiator != "" {
		text += fmt.Sprintf("  initiatorName: %+q\n", s.initiator)
	}
	if s.target.CHAP != nil {
		text += fmt.Sprintf("  secretRef: {name: %+q}\n", s.secret)
	}
	return text
}

var visible = regexp.MustCompile(`^[!-~]{1,255}$`)

// parse reads what names the volume, its size, 0 if there is none, and what it is to have.
func parse(r *http.Request) (key string, size int64, of content, err error) {
	if v := r.Header.Get(podwire.ProtocolHeader); v != "" && v != "v1" {
		return "", 0, of, refuseWith(http.StatusBadRequest, "the header Virtclaim-Protocol is %.40q, and this server knows v1 only", v)
	}
	if key = r.Header.Get(podwire.KeyHeader); !visible.MatchString(key) || len(r.Header.Values(podwire.KeyHeader)) > 1 {
		return "", 0, of, refuseWith(http.StatusBadRequest,
			"one header Idempotency-Key is needed, of 1 to 255 visible ASCII characters: it names the volume")
	}
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", 0, of, refuseWith(http.StatusBadRequest, "the parameters %.40q can't be read. Write them as in /volume?size=10Gi",
			r.URL.RawQuery)
	}
	if err := of.takeParameters(parameters); err != nil {
		return "", 0, of, err
	}
	for name, values := range parameters {
		if name != "size" || len(values) > 1 {
			return "", 0, of, refuseWith(http.StatusBadRequest, "the parameter %.40q is unknown, or there twice. There are size, image, "+
				"path, root_filesystem and read_only, each once", name)
		}
		if size, err = bytesOf(values[0]); err != nil {
			return "", 0, of, refuseWith(http.StatusBadRequest, "the parameter size: %w", err)
		}
	}
	return key, size, of, nil
}

// refusal is an error with its status.
type refusal struct {
	error
	status int
}

func refuseWith(status int, format string, args ...any) error {
	return refusal{fmt.Errorf(format, args...), status}
}

func statusOf(err error) int {
	is, ok := errors.AsType[refusal](err)
	switch {
	case ok:
		return is.status
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG), errors.Is(err, ErrTooLarge):
		return http.StatusInsufficientStorage
	case errors.Is(err, context.Canceled): // this server ends
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
