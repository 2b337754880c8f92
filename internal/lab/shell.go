package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"libvirt.org/go/libvirtxml"
)

// typeIn types a line, its second argument, at a pseudo-terminal, its first one, and stores the output in a file, its third one, up to the
// line with the exit status. QEMU polls once a second whether the terminal is open, so it must stay open until then.
const typeIn = `exec 3<>%s
printf '%%s\n' %s >&3
while IFS= read -r -t %d line <&3; do
	case $line in RC=*) exit "${line#RC=}" ;; esac
	printf '%%s\n' "$line"
done >%s
echo "no answer in time"
exit 1`

// answerTime is the timeout for a guest's next line.
var answerTime = Patience(time.Minute)

// Shell has a lab guest that is READY run a command, of at most 4,095 bytes and in one line, and returns its output, also with the error of
// an exit status that is not 0. The domain's first serial port must be a pty, which is libvirt's default; its output goes to the port's log
// file, too. It takes up to a second.
func (h *Host) Shell(ctx context.Context, domain, command string) (string, error) {
	terminal, err := h.terminal(ctx, domain)
	if err != nil {
		return "", fmt.Errorf("find the serial port of %s on %s: %w", domain, h.Name, err)
	}
	answer, err := os.CreateTemp(h.Dir, "shell-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(answer.Name()) }()
	if err := answer.Close(); err != nil {
		return "", err
	}
	failed := h.sandbox.run(ctx, fmt.Sprintf(typeIn, quote(terminal), quote(command), int(answerTime.Seconds()), quote(answer.Name())))
	text, err := os.ReadFile(answer.Name())
	if err != nil {
		return "", err
	}
	if failed != nil {
		failed = fmt.Errorf("run %q in %s on %s: %w", command, domain, h.Name, failed)
	}
	return strings.ReplaceAll(string(text), "\r", ""), failed
}

// terminal is the pseudo-terminal of a running domain's first serial port.
func (h *Host) terminal(ctx context.Context, domain string) (string, error) {
	l, disconnect, err := h.connect(ctx)
	if err != nil {
		return "", err
	}
	defer disconnect()
	d, err := l.DomainLookupByName(domain)
	if err != nil {
		return "", err
	}
	text, err := l.DomainGetXMLDesc(d, 0)
	if err != nil {
		return "", err
	}
	var xml libvirtxml.Domain
	if err := xml.Unmarshal(text); err != nil {
		return "", err
	}
	if xml.Devices == nil || len(xml.Devices.Serials) == 0 {
		return "", errors.New("it has none")
	}
	source := xml.Devices.Serials[0].Source
	if source == nil || source.Pty == nil || source.Pty.Path == "" {
		return "", errors.New("it is no pty, or the domain does not run")
	}
	return source.Pty.Path, nil
}
