package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// Migration is how the guest of a running domain is migrated to another host.
type Migration struct {
	// Name is the domain's.
	Name string
	// Bandwidth is in MiB/s; 0 is QEMU's default.
	Bandwidth uint64
	// Timeout is how long the guest's memory may be copied; 0 is until the context ends.
	Timeout time.Duration
	// AutoConverge slows a guest down that writes its memory faster than that is copied. PostCopy has it run on the target after Timeout,
	// while the rest is still copied; otherwise the migration is broken off.
	AutoConverge, PostCopy bool
	// SharedFiles tells that disks are files that the target is known to have, too: libvirt takes only some filesystems for shared.
	SharedFiles bool
	// Disks are libvirt's names of the disks whose top layer is copied into the volume that the target has for it. Running and Stored are
	// the running and the stored domain as they are to be there, with the target's volumes; empty if they are the same.
	Disks           []string
	Running, Stored string
	// Report is called every other second with the progress.
	Report func(Progress)
}

// ErrGuestWaits is the error of a migration whose end is not known, because a connection broke: the guest is paused on its host, or runs on
// the target.
var ErrGuestWaits = errors.New("whether the guest runs on the target is not known")

// errMigrationTime is the error of a guest whose memory changes faster than it is copied.
var errMigrationTime = errors.New("the guest's memory was not copied in time (migration.timeout): it may write faster than the network " +
	"is. Set auto_converge or postcopy, or use mode = \"offline\"")

// lastCall is how long the calls may take that end a migration, beyond the operation's timeout.
const lastCall = time.Minute

// MigrateTo migrates the guest of a running domain to another host of the configuration, which gets the domain's stored definition; this
// host's is undefined. After an error other than ErrGuestWaits the guest goes on here.
//
// The source's libvirtd has the target's do its part if the target has a migration_uri (peer to peer). Otherwise this process passes what
// the two say to each other, so that neither needs access to the other. QEMU itself always connects to the target's QEMU.
func (h *Host) MigrateTo(ctx context.Context, target, id string, how Migration) error {
	op := fmt.Sprintf("migrate domain %s to host %s", id, target)
	d, err := domain(id)
	if err != nil {
		return h.failed(op, err)
	}
	to, err := h.registry.Host(target)
	if err != nil {
		return err
	}
	m := migration{Migration: how, id: id, domain: d, host: h, flags: how.flags(), params: how.params(h.registry, target)}
	peer := h.registry.configs[target].MigrationURI
	if err := m.dial(ctx, to, peer == ""); err != nil {
		return err
	}
	defer m.hangUp()
	if peer != "" {
		m.flags |= libvirt.MigratePeer2peer
		err = m.perform(ctx, peer)
	} else {
		err = m.throughHere(ctx)
	}
	h.forget(id)
	to.forget(id)
	if err != nil {
		return h.failed(op, explainMigration(target, err))
	}
	return nil
}

// dial opens connections for this migration alone: libvirt ends a migration with the connection that has begun it.
func (m *migration) dial(ctx context.Context, to *Host, both bool) error {
	open := func(h *Host, c **conn) func() error {
		return func() (err error) {
			if *c, err = dial(ctx, h.uri, h.timeout, func(*libvirt.Libvirt) error { return nil }); err != nil {
				err = h.failed("connect for a migration", err)
			}
			return err
		}
	}
	calls := []func() error{open(m.host, &m.source)}
	if both {
		calls = append(calls, open(to, &m.target))
	}
	err := together(calls...)
	if err != nil {
		m.hangUp()
	}
	return err
}

func (m *migration) hangUp() {
	for _, c := range []*conn{m.source, m.target} {
		if c != nil {
			go c.disconnect() // an unresponsive libvirtd may never answer
		}
	}
}

func (m Migration) flags() libvirt.DomainMigrateFlags {
	flags := libvirt.MigrateLive | libvirt.MigratePersistDest | libvirt.MigrateUndefineSource | libvirt.MigrateAbortOnError
	for flag, set := range map[libvirt.DomainMigrateFlags]bool{
		libvirt.MigrateAutoConverge: m.AutoConverge, libvirt.MigratePostcopy: m.PostCopy, libvirt.MigrateUnsafe: m.SharedFiles,
		libvirt.MigrateNonSharedInc: len(m.Disks) > 0, // only the top layer
	} {
		if set {
			flags |= flag
		}
	}
	return flags
}

func (m Migration) params(all *Registry, target string) (params []libvirt.TypedParam) {
	if address := all.configs[target].MigrationAddress; address != "" {
		params = append(params, textParam(libvirt.MigrateParamURI, "tcp://"+urlHost(address)))
	}
	if m.Bandwidth > 0 {
		value := libvirt.NewTypedParamValueUllong(m.Bandwidth)
		params = append(params, libvirt.TypedParam{Field: libvirt.MigrateParamBandwidth, Value: *value})
	}
	for _, disk := range m.Disks { // without them libvirt would copy onto storage that both hosts have
		params = append(params, textParam(libvirt.MigrateParamMigrateDisks, disk))
	}
	if m.Running != "" {
		params = append(params, textParam(libvirt.MigrateParamDestXML, m.Running),
			textParam(libvirt.MigrateParamPersistXML, m.Stored))
	}
	return params
}

// urlHost is an address as it is written in a URL.
func urlHost(address string) string {
	if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
		return "[" + address + "]"
	}
	return address
}

func textParam(name, value string) libvirt.TypedParam {
	return libvirt.TypedParam{Field: name, Value: *libvirt.NewTypedParamValueString(value)}
}

// migration is one that runs.
type migration struct {
	Migration
	id     string
	domain libvirt.Domain
	host   *Host
	// source and target are connections of its own; the target is nil peer to peer.
	source, target *conn
	flags          libvirt.DomainMigrateFlags
	params         []libvirt.TypedParam
	cookie         []byte
}

// throughHere is libvirt's protocol of migrations (version 3), as its own client library follows it: Begin, Prepare, Perform, Finish,
// Confirm.
func (m *migration) throughHere(ctx context.Context) error {
	m.flags |= libvirt.MigrateChangeProtection
	xml, err := m.begin(ctx)
	if err != nil {
		return err
	}
	m.staysPaused(ctx)
	given := m.params
	m.params = append(withoutParam(given, libvirt.MigrateParamDestXML), textParam(libvirt.MigrateParamDestXML, xml))
	if err := m.prepare(ctx); err != nil {
		return errors.Join(err, m.confirm(ctx, err))
	}
	performed := m.perform(ctx, "")
	m.params = slices.Concat(given, []libvirt.TypedParam{textParam(libvirt.MigrateParamDestName, m.Name)})
	finished := m.finish(ctx, performed)
	switch {
	case performed != nil: // the target discards the guest, whether it has heard of that or not
		return errors.Join(performed, m.confirm(ctx, performed))
	case isBroken(finished) || errors.Is(finished, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrGuestWaits, finished) // it may run there, so that it must not go on here
	}
	return errors.Join(finished, m.confirm(ctx, finished))
}

func (m *migration) begin(ctx context.Context) (xml string, err error) {
	type begun struct {
		cookie []byte
		xml    string
	}
	b, err := within(ctx, m.source, func(l *libvirt.Libvirt) (b begun, err error) {
		b.cookie, b.xml, err = l.DomainMigrateBegin3Params(m.domain, m.params, uint32(m.flags))
		return b, err
	})
	m.cookie = b.cookie
	return b.xml, err
}

// staysPaused has a guest that is paused be paused on the target, too.
func (m *migration) staysPaused(ctx context.Context) {
	state, err := within(ctx, m.source, func(l *libvirt.Libvirt) (int32, error) {
		state, _, err := l.DomainGetState(m.domain, 0)
		return state, err
	})
	if err == nil && libvirt.DomainState(state) == libvirt.DomainPaused {
		m.flags |= libvirt.MigratePaused
	}
}

func (m *migration) prepare(ctx context.Context) error {
	type prepared struct {
		cookie []byte
		uri    libvirt.OptString
	}
	p, err := within(ctx, m.target, func(l *libvirt.Libvirt) (p prepared, err error) {
		p.cookie, p.uri, err = l.DomainMigratePrepare3Params(m.params, m.cookie, uint32(m.flags))
		return p, err
	})
	m.cookie = p.cookie
	if err == nil && len(p.uri) > 0 && p.uri[0] != "" {
		m.params = append(withoutParam(m.params, libvirt.MigrateParamURI), textParam(libvirt.MigrateParamURI, p.uri[0]))
	}
	return err
}

func withoutParam(all []libvirt.TypedParam, name string) (others []libvirt.TypedParam) {
	for _, p := range all {
		if p.Field != name {
			others = append(others, p)
		}
	}
	return others
}

// perform copies the guest's memory, or, peer to peer, does all.
func (m *migration) perform(ctx context.Context, peer string) error {
	var to libvirt.OptString
	if peer != "" {
		to = libvirt.OptString{peer}
	}
	performed := make(chan performance, 1)
	go func() {
		var p performance
		p.cookie, p.err = m.source.DomainMigratePerform3Params(m.domain, to, m.params, m.cookie, m.flags)
		performed <- p
	}()
	p := m.attend(ctx, performed)
	m.cookie = p.cookie
	return p.err
}

// performance is how the copy of a guest's memory has ended.
type performance struct {
	cookie []byte
	err    error
}

// attend reports the progress until the memory is copied, and breaks the copy off when its time is over. A guest that runs on the target
// since post-copy has begun is waited for, however long it takes.
func (m *migration) attend(ctx context.Context, performed <-chan performance) performance {
	tick := time.NewTicker(progressTime) //nolint:forbidigo // libvirt has no events for the progress of a migration
	defer tick.Stop()
	var late <-chan time.Time
	if m.Timeout > 0 {
		late = time.After(m.Timeout)
	}
	ended := ctx.Done()
	for {
		select {
		case p := <-performed:
			return p
		case <-tick.C:
			m.report(ctx)
		case <-late:
			if !m.PostCopy || m.host.startPostCopy(ctx, m.id) != nil {
				return m.abort(ctx, performed, errMigrationTime)
			}
			ended = nil
		case <-ended:
			return m.abort(ctx, performed, context.Cause(ctx))
		}
	}
}

// abort breaks the copy off. A guest that is the target's already can't be kept here: its migration ends.
func (m *migration) abort(ctx context.Context, performed <-chan performance, cause error) performance {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCall)
	defer cancel()
	refused := m.host.AbortJob(ctx, m.id)
	select {
	case p := <-performed:
		if p.err != nil {
			p.err = fmt.Errorf("%w: %w", cause, p.err)
		}
		return p
	case <-ctx.Done():
		_ = m.source.way.Close() // libvirtd ends it, or the guest stays paused
		return performance{err: errors.Join(cause, refused)}
	}
}

func (m *migration) report(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, progressTime)
	defer cancel()
	if p, err := m.host.migrationProgress(ctx, m.id); err == nil && m.Report != nil {
		m.Report(p)
	}
}

// finish starts the guest on the target, or discards it there if it could not be copied.
func (m *migration) finish(ctx context.Context, performed error) error {
	cookie, err := within(ctx, m.target, func(l *libvirt.Libvirt) ([]byte, error) {
		_, cookie, err := l.DomainMigrateFinish3Params(m.params, m.cookie, uint32(m.flags), isFailure(performed))
		return cookie, err
	})
	m.cookie = cookie
	return err
}

// confirm ends the domain on the source, or has its guest go on there after a failure.
func (m *migration) confirm(ctx context.Context, failed error) error {
	_, err := within(ctx, m.source, func(l *libvirt.Libvirt) (struct{}, error) {
		return struct{}{}, l.DomainMigrateConfirm3Params(m.domain, m.params, m.cookie, uint32(m.flags), isFailure(failed))
	})
	return err
}

func isFailure(err error) int32 {
	if err != nil {
		return 1
	}
	return 0
}

// MigratableXML is the XML of a running domain as another host would get it.
func (h *Host) MigratableXML(ctx context.Context, id string) (string, error) {
	return onDomain(ctx, h, "read the migratable XML of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (string, error) {
		return l.DomainGetXMLDesc(d, libvirt.DomainXMLMigratable|libvirt.DomainXMLSecure)
	})
}

// within runs a short call on a connection of its own. One that does not end breaks the connection.
func within[T any](ctx context.Context, c *conn, f func(*libvirt.Libvirt) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCall)
	defer cancel()
	ended := make(chan answer, 1)
	go func() {
		value, err := f(c.Libvirt)
		ended <- answer{value, err}
	}()
	select {
	case a := <-ended:
		return a.value, a.err
	case <-ctx.Done():
		_ = c.way.Close()
		return *new(T), context.Cause(ctx)
	}
}

// explainMigration adds to libvirt's error what usually is the cause.
func explainMigration(target string, err error) error {
	switch {
	case isCode(err, libvirt.ErrOperationUnsupported), isCode(err, libvirt.ErrCPUIncompatible), isCode(err, libvirt.ErrMigrateUnsafe):
		return fmt.Errorf("%w. It goes on where it was; migration = { mode = \"offline\" } shuts it down, and starts it on %s", err, target)
	case isCode(err, libvirt.ErrSystemError), isCode(err, libvirt.ErrOperationFailed), isCode(err, libvirt.ErrInternalError):
		return fmt.Errorf("%w. If it is the connection: QEMU connects to a port from 49152 to 49215 of host %s, at its own host name or "+
			"the migration_address of that host in hosts", err, target)
	}
	return err
}

func (h *Host) startPostCopy(ctx context.Context, id string) error {
	return domainDo(ctx, h, "start post-copy of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainMigrateStartPostCopy(d, 0)
	})
}

// AbortJob breaks off the migration of a domain. One that has none is no error.
func (h *Host) AbortJob(ctx context.Context, id string) error {
	err := domainDo(ctx, h, "break off the migration of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainAbortJob(d)
	})
	if isCode(err, libvirt.ErrOperationInvalid) {
		return nil
	}
	return err
}

func (h *Host) migrationProgress(ctx context.Context, id string) (Progress, error) {
	return onDomain(ctx, h, "ask for the migration of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (Progress, error) {
		_, _, _, all, done, _, _, _, _, _, _, _, err := l.DomainGetJobInfo(d)
		return Progress{int64(done), int64(all)}, err
	})
}

// IsMigrating reports whether a domain is being migrated from this host or to it.
func (h *Host) IsMigrating(ctx context.Context, id string) (bool, error) {
	return onDomain(ctx, h, "ask for a migration of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (bool, error) {
		kind, _, _, _, _, _, _, _, _, _, _, _, err := l.DomainGetJobInfo(d)
		if isCode(err, libvirt.ErrOperationInvalid) {
			return false, nil // it has gone off
		}
		return libvirt.DomainJobType(kind) != libvirt.DomainJobNone, err
	})
}

// Resume lets a paused guest go on. One that is not paused is no error.
func (h *Host) Resume(ctx context.Context, id string) error {
	return domainDo(ctx, h, "resume domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		err := l.DomainResume(d)
		if state, _, failed := l.DomainGetState(d, 0); failed == nil && libvirt.DomainState(state) == libvirt.DomainRunning {
			err = nil
		}
		return err
	})
}
