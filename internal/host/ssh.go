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
	"time"

	"github.com/digitalocean/go-libvirt"
)

// connectSSH connects through the ssh program, so that the user's configuration, agent, jump hosts and known hosts are used.
func connectSSH(ctx context.Context, uri *url.URL) (net.Conn, error) {
	program := cmp.Or(uri.Query().Get("command"), "ssh")
	// The end of ctx cancels the attempt, not an open connection.
	return startTunnel(exec.CommandContext(context.WithoutCancel(ctx), program, sshArguments(uri, timeFor(ctx))...), uri.Host)
}

// timeFor is how long ssh may take to connect.
func timeFor(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Second, time.Until(end).Round(time.Second))
	}
	return dialTimeout
}

// The users and hosts that are passed to ssh: without characters that ssh, a shell of its configuration's commands, or that of the host
// could interpret.
var (
	sshUser = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._+@\\-]*[A-Za-z0-9._+@-])?$`)
	sshHost = regexp.MustCompile(`^[A-Za-z0-9_:.][A-Za-z0-9._:%-]*$`)
)

// validateSSH checks the arguments for ssh. Its error continues a sentence about the URI.
func validateSSH(uri *url.URL) error {
	query := uri.Query()
	if user := uri.User.Username(); user != "" && !sshUser.MatchString(user) {
		return fmt.Errorf("has the user %q, which must consist of letters, digits and . _ + @ \\ -, and begin with a letter, a digit or _",
			user)
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

// sshArguments override the user's configuration: ssh must not prompt, because there is no terminal, and a pseudo-terminal, an escape
// character or a forwarding must not disturb the data.
func sshArguments(uri *url.URL, timeout time.Duration) []string {
	query := uri.Query()
	args := []string{"-T", "-e", "none"}
	option := func(text string) { args = append(args, "-o", text) }
	option("BatchMode=yes")
	option("ClearAllForwardings=yes")
	option(fmt.Sprintf("ConnectTimeout=%d", int(timeout.Seconds())))
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
	// The user's shell on the host may be any: the script is run by sh.
	return append(args, "--", uri.Hostname(), "sh -c "+ShellQuote(sshScript(uri)))
}

// The programs on the host that connect to libvirt's socket: the one that is part of libvirt, and netcat. Some netcats need an option to
// end together with their input; others do so by default and don't have that option.
const (
	viaHelper = `exec virt-ssh-helper %s`
	viaNetcat = `n=%s; for s in %s; do [ -S "$s" ] && break; done; ` +
		`if "$n" -q 2>&1 | grep -q "requires an argument"; then exec "$n" -q0 -U "$s"; fi; exec "$n" -U "$s"`
	viaEither = `if command -v virt-ssh-helper >/dev/null 2>&1; then %s; fi; ` +
		`if command -v nc >/dev/null 2>&1; then %s; fi; echo "there is neither virt-ssh-helper nor nc on the host" >&2; exit 127`
)

// sshScript is the script that runs on the host. It uses the program that the URI names, or netcat if a parameter requires it.
func sshScript(uri *url.URL) string {
	query := uri.Query()
	helper := fmt.Sprintf(viaHelper, ShellQuote(string(libvirt.RemoteURI(uri))))
	netcat := fmt.Sprintf(viaNetcat, ShellQuote(cmp.Or(query.Get("netcat"), "nc")), strings.Join(remoteSockets(uri), " "))
	switch {
	case query.Get("proxy") == "native":
		return helper
	case query.Get("proxy") == "netcat", query.Get("netcat") != "", query.Get("socket") != "":
		return netcat
	}
	return fmt.Sprintf(viaEither, helper, netcat)
}

// remoteSockets are the sockets as words for the host's shell, which expands the paths of its user.
func remoteSockets(uri *url.URL) []string {
	const runtime = "${XDG_RUNTIME_DIR:-$HOME/.cache}"
	var words []string
	for _, socket := range sockets(uri, func() string { return runtime }) {
		word := ShellQuote(socket)
		if rest, ok := strings.CutPrefix(socket, runtime); ok && !uri.Query().Has("socket") {
			word = `"` + runtime + `"` + ShellQuote(rest)
		}
		words = append(words, word)
	}
	return words
}

// ShellQuote quotes s as one word for a shell.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
