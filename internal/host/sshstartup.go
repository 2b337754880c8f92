package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
)

// longestLength is the first byte of the longest packet of libvirt, which begins with its length: 32 MiB. Text has no such bytes.
const longestLength = 2

const (
	// noiseTime is how long the rest of what a shell prints is waited for.
	noiseTime = 300 * time.Millisecond
	// noiseSize is how much of it is shown, in bytes.
	noiseSize = 256
)

// noiseError is the error of a host whose shell prints to standard output, where libvirt's protocol is expected.
type noiseError struct{ text, stderr string }

func (e *noiseError) Error() string {
	text := fmt.Sprintf("the shell of the host printed %q before libvirt's answer. Have its start-up files (such as ~/.bashrc) print "+
		"nothing without a terminal: ssh <host> true must print nothing", e.text)
	if e.stderr != "" {
		text += ". It also printed the error " + e.stderr
	}
	return text
}

// readNoise reads the rest of the text that the shell prints: the connection is of no use any more.
func (t *tunnel) readNoise(begin []byte) *noiseError {
	text := make([]byte, noiseSize)
	n := copy(text, begin)
	_ = t.out.SetReadDeadline(time.Now().Add(noiseTime))
	more, _ := io.ReadFull(t.out, text[n:])
	shown, _, _ := strings.Cut(string(text[:n+more]), "\x00") // libvirt's answer
	return &noiseError{shown, t.said.String()}
}

// refusedStartup matches what OpenSSH's client says when a server ends the connection before it has said who it is.
var refusedStartup = regexp.MustCompile(`(kex|ssh)_exchange_identification|Connection reset by`)

// startupError is the error of a connection that sshd did not let begin.
type startupError struct{ said string }

func (e *startupError) Error() string {
	return e.said + ". An sshd drops connections at random while many others log in: raise MaxStartups in its sshd_config, or connect " +
		"less at once (terraform apply -parallelism=2)"
}

// How often a connection that sshd drops is tried, and the first pause, which doubles: four seconds in all.
const (
	startupTries      = 5
	firstStartupPause = 250 * time.Millisecond
)

// startupPause is firstStartupPause, which tests shorten.
var startupPause = firstStartupPause

// retryStartup repeats open as long as sshd drops its connection.
func retryStartup[T any](ctx context.Context, open func() (T, error)) (opened T, err error) {
	for try := range startupTries {
		var dropped *startupError
		if opened, err = open(); !errors.As(err, &dropped) || try == startupTries-1 {
			break
		}
		pause := startupPause << try
		timer := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // others, which were dropped as well, must not come back at once
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return opened, err // says more than that the time is up
		}
	}
	return opened, err
}
