package image

import (
	"regexp"
	"strings"
)

// The parts of a URL that may be secret: the query, which may contain a signature, and the user. Addresses come from servers, too, and
// errors of libraries contain them. Quotes are legal in both parts, so that only white space ends them for certain; what may be a closing
// quote is kept.
var (
	queries   = regexp.MustCompile(`\?\S+?(["':,]*(?:\s|$))`)
	userParts = regexp.MustCompile(`//[^/\s]+@`)
)

// breaks escapes line breaks: a server's text must not look like several messages.
var breaks = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// redact removes secrets from the text of an error, which may be logged. The result wraps the error.
func redact(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "...")
		}
	}
	text = queries.ReplaceAllString(text, "?...$1")
	text = userParts.ReplaceAllString(text, "//...@")
	text = breaks.Replace(text)
	if text == err.Error() {
		return err
	}
	return redacted{text, err}
}

type redacted struct {
	text string
	err  error
}

func (r redacted) Error() string { return r.text }
func (r redacted) Unwrap() error { return r.err }
