package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"regexp"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// connectSSH goes through the ssh program, so that its user's configuration, agent, jump hosts and known hosts hold.
func connectSSH(ctx context.Context, uri *url.URL) (net.Conn, error) {
	program := cmp.Or(uri.Query().Get("command"), "ssh")
	// What ends with ctx is the attempt; the connection lasts.
	return startTunnel(exec.CommandContext(context.WithoutCancel(ctx), program, sshArguments(uri)...), uri.Host)
}

// What ssh is given as a user and a host: nothing that it, a shell of its configuration's commands or that of the host could take for
// more than a name.
var (
	sshUser = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._+@\\-]*[A-Za-z0-9._+@-])?$`)
	sshHost = regexp.MustCompile(`^[A-Za-z0-9_:.][A-Za-z0-9._:%-]*$`)
)

// validateSSH checks what is said to ssh. Its error continues a sentence about the URI.
func validateSSH(uri *url.URL) error {
	query := uri.Query()
	if user := uri.User.Username(); user != "" && !sshUser.MatchString(user) {
		return fmt.Errorf("has the user %q, which must consist of letters, digits and . _ + @ \\ -, and begin with a letter, a digit or _", user)
	}
	if host := uri.Hostname(); !sshHost.MatchString(host) {
		return fmt.Errorf("has the host %q, which must consist of letters, digits and . _ : %% -, and not begin with -", host)
	}
	if verify := query.Get("known_hosts_verify"); verify != "" && verify != "normal" && verify != "auto" && verify != "ignore" {
		return fmt.Errorf("has known_hosts_verify=%s; only normal, auto and ignore are known", verify)
	}
	if strings.ContainsAny(query.Get("known_hosts"), "\"\n") {
		return errors.New("names a file of known_hosts with a quotation mark or a line break in it")
	}
	switch proxy := query.Get("proxy"); {
	case proxy != "" && proxy != "auto" && proxy != "netcat" && proxy != "native":
		return fmt.Errorf("has proxy=%s; only auto, netcat and native are known", proxy)
	case proxy == "native" && (query.Has("netcat") || query.Has("socket")):
		return errors.New("has proxy=native, which takes neither netcat nor socket")
	}
	return nil
}

// sshArguments are what goes before everything that a user's configuration says: nothing may be asked for, since nobody is
// there to answer, and neither a terminal nor an escape character nor a forwarding may get in the way of the data.
func sshArguments(uri *url.URL) []string {
	query := uri.Query()
	args := []string{"-T", "-e", "none"}
	option := func(text string) { args = append(args, "-o", text) }
	option("BatchMode=yes")
	option("ClearAllForwardings=yes")
	option(fmt.Sprintf("ConnectTimeout=%d", int(dialTimeout.Seconds())))
	if user := uri.User.Username(); user != "" {
		args = append(args, "-l", user)
	}
	if port := uri.Port(); port != "" {
		args = append(args, "-p", port)
	}
	if file := query.Get("keyfile"); file != "" {
		args = append(args, "-i", file)
	}
	if file := query.Get("known_hosts"); file != "" {
		option(`UserKnownHostsFile="` + strings.ReplaceAll(file, "%", "%%") + `"`)
	}
	switch verify := query.Get("known_hosts_verify"); {
	case verify == "ignore", isUnverified(uri):
		option("StrictHostKeyChecking=no")
	case verify == "auto":
		option("StrictHostKeyChecking=accept-new")
	}
	// Whatever shell its user has there, this is for sh.
	return append(args, "--", uri.Hostname(), "sh -c "+quote(sshScript(uri)))
}

// The ways from there to libvirt's socket: the program that comes with libvirt for this, and a netcat. There are netcats that
// end with their input only when they are told, and others that do by themselves and don't know that option.
const (
	viaHelper = `exec virt-ssh-helper %s`
	viaNetcat = `n=%s; for s in %s; do [ -S "$s" ] && break; done; ` +
		`if "$n" -q 2>&1 | grep -q "requires an argument"; then exec "$n" -q0 -U "$s"; fi; exec "$n" -U "$s"`
	viaEither = `if command -v virt-ssh-helper >/dev/null 2>&1; then %s; fi; ` +
		`if command -v nc >/dev/null 2>&1; then %s; fi; echo "there is neither virt-ssh-helper nor nc on the host" >&2; exit 127`
)

// sshScript is what runs on the host. A way that the URI names is taken, also one that can only be netcat's.
func sshScript(uri *url.URL) string {
	query := uri.Query()
	helper := fmt.Sprintf(viaHelper, quote(string(libvirt.RemoteURI(uri))))
	netcat := fmt.Sprintf(viaNetcat, quote(cmp.Or(query.Get("netcat"), "nc")), strings.Join(remoteSockets(uri), " "))
	switch {
	case query.Get("proxy") == "native":
		return helper
	case query.Get("proxy") == "netcat", query.Get("netcat") != "", query.Get("socket") != "":
		return netcat
	}
	return fmt.Sprintf(viaEither, helper, netcat)
}

// remoteSockets are sockets as words for the shell of a host, which knows where its user's are.
func remoteSockets(uri *url.URL) []string {
	const runtime = "${XDG_RUNTIME_DIR:-$HOME/.cache}"
	var words []string
	for _, socket := range sockets(uri, func() string { return runtime }) {
		word := quote(socket)
		if rest, ok := strings.CutPrefix(socket, runtime); ok && !uri.Query().Has("socket") {
			word = `"` + runtime + `"` + quote(rest)
		}
		words = append(words, word)
	}
	return words
}

// quote makes one word of s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
