package provider

import (
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// visible makes an answer's diagnostics fit for a terminal.
func visible[R any](answer *R, err error) (*R, error) {
	if err != nil {
		err = errors.New(visibleText(err.Error()))
	}
	if answer == nil {
		return nil, err
	}
	if field := reflect.ValueOf(answer).Elem().FieldByName("Diagnostics"); field.IsValid() {
		for _, d := range field.Interface().([]*tfprotov6.Diagnostic) {
			d.Summary, d.Detail = visibleText(d.Summary), visibleText(d.Detail)
		}
	}
	return answer, err
}

// passwords are those in URLs, which errors of libraries repeat.
var passwords = regexp.MustCompile(`(://[^/\s:@]*):[^/\s]*@`)

// visibleText writes what can't be seen, or changes what is seen around it, as Go would: control characters, marks that turn the
// direction of writing, characters without a width, and bytes that are no text. Line breaks and tabs stay.
func visibleText(s string) string {
	s = passwords.ReplaceAllString(s, "$1:xxxxx@")
	if !strings.ContainsFunc(s, isInvisible) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if quoted := strconv.QuoteToGraphic(s[:n]); isInvisible(r) && s[:n] != string(utf8.RuneError) {
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// isInvisible is true of U+FFFD, too, as which bytes that are no text are read.
func isInvisible(r rune) bool {
	return r == utf8.RuneError || !unicode.IsGraphic(r) && r != '\n' && r != '\t'
}
