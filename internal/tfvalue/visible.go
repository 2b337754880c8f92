package tfvalue

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// passwords are passwords in URLs, which errors of libraries contain.
var passwords = regexp.MustCompile(`(://[^/\s:@]*):[^/\s]*@`)

// Visible escapes, as Go does, characters that are invisible or change the display of others: control characters, marks that change the
// direction of writing, characters without a width, and invalid UTF-8. Line breaks and tabs are kept. Passwords in URLs are replaced.
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

// IsInvisible reports whether Visible changes a character. It is true for U+FFFD, too, which stands for invalid UTF-8.
func IsInvisible(r rune) bool {
	return r == utf8.RuneError || !unicode.IsGraphic(r) && r != '\n' && r != '\t'
}
