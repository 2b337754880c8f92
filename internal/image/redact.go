package image

import (
	"regexp"
	"strings"
)

// What may be secret in a URL: the query, which signs it, and the user's part. Addresses come from servers, too, and errors of
// libraries repeat them. Quotes are legal in both: only white space ends them for sure, and what may be a quote around them is
// left standing.
var (
	queries   = regexp.MustCompile(`\?\S+?(["':,]*(?:\s|$))`)
	userParts = regexp.MustCompile(`//[^/\s]+@`)
)

// breaks are in no message of ours: what a server says must not look like more than one.
var breaks = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// redact takes out of an error's text what nobody may read in a log. What the error is stays.
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
