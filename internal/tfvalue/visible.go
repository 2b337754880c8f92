package tfvalue

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// passwords are those in URLs, which errors of libraries repeat.
var passwords = regexp.MustCompile(`(://[^/\s:@]*):[^/\s]*@`)

// Visible writes what can't be seen, or changes what is seen around it, as Go would: control characters, marks that turn the
// direction of writing, characters without a width, and bytes that are no text. Line breaks and tabs stay.
func Visible(s string) string {
	s = passwords.ReplaceAllString(s, "$1:xxxxx@")
	if !strings.ContainsFunc(s, IsInvisible) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if quoted := strconv.QuoteToGraphic(s[:n]); IsInvisible(r) && s[:n] != string(utf8.RuneError) {
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// IsInvisible tells whether Visible changes a character. It is true of U+FFFD, too, as which bytes that are no text are read.
func IsInvisible(r rune) bool {
	return r == utf8.RuneError || !unicode.IsGraphic(r) && r != '\n' && r != '\t'
}
