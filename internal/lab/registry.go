package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
)

// registryConfiguration stores pushed images in a folder, its first argument, and listens on the second. It accesses the network only for
// names in its log.
const registryConfiguration = `version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %q}, delete: {enabled: true}}
http: {addr: %q, relativeurls: true}
`

// Registry is a registry of container images. It uses plain HTTP, which clients do with 127.0.0.1 by default, and this process is a proxy
// that counts requests and makes them fail.
type Registry struct {
	// Address is its host:port.
	Address string
	// Private is the host:port of the same images with authentication by Username and Password.
	Private            string
	Username, Password string

	dir     string
	sandbox *sandbox
	// server is the registry itself: the lab's own pushes are not counted.
	server  string
	proxies []*http.Server
	cuts    cuts

	mu   sync.Mutex
	seen map[registryRequest]int
}

// registryRequest is the key that requests are counted by.
type registryRequest struct{ method, kind string }

// Registry returns the lab's registry, which the first call starts.
func (l *Lab) Registry(ctx context.Context) (*Registry, error) {
	return l.registry.get(ctx, func(ctx context.Context) (*Registry, error) {
		dir, err := l.serverFolder("registry")
		if err != nil {
			return nil, err
		}
		r := &Registry{dir: dir, Username: "lab", Password: "let-me-pull", seen: map[registryRequest]int{}}
		if r.sandbox, err = startSandbox(ctx, l.Dir, "registry", dir); err != nil {
			return nil, err
		}
		return r, r.start(ctx)
	})
}

func (r *Registry) start(ctx context.Context) (err error) {
	if r.server, err = freePort(ctx); err != nil {
		return err
	}
	configuration := filepath.Join(r.dir, "registry.yml")
	text := fmt.Sprintf(registryConfiguration, filepath.Join(r.dir, "content"), r.server)
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		return err
	}
	d := startDaemon(r.sandbox, r.dir, "registry", "docker-registry serve "+quote(configuration))
	if err := d.await(ctx, r.answers); err != nil {
		return fmt.Errorf("start the registry: %w", err)
	}
	if r.Address, err = r.listen(ctx, r.proxy()); err != nil {
		return err
	}
	r.Private, err = r.listen(ctx, r.asksWho(r.proxy()))
	return err
}

// answers checks that it supports the protocol.
func (r *Registry) answers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.server+"/v2/", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers with status %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

func (r *Registry) close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	var all []error
	for _, proxy := range r.proxies {
		all = append(all, proxy.Close())
	}
	return errors.Join(append(all, r.sandbox.close(ctx))...)
}
