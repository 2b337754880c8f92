package tfvalue

import "testing"

// Visible text is unchanged; invisible characters are escaped as in Go, and passwords in URLs are replaced.
func TestVisible_Table(t *testing.T) {
	for text, want := range map[string]string{
		"plain, with ünïcödé, 漢字 and 🖥":           "plain, with ünïcödé, 漢字 and 🖥",
		"two\n\tlines, \"quotes\" and \\n":        "two\n\tlines, \"quotes\" and \\n",
		"\x1b[2J\x1b]8;;http://evil\x1b\\click":   `\x1b[2J\x1b]8;;http://evil\x1b\click`,
		"gone\r\b\x00\x7f":                        `gone\r\b\x00\x7f`,
		"C1 as a rune \u009b31m":                  `C1 as a rune \u009b31m`,
		"C1 as a byte \x9b31m":                    `C1 as a byte \x9b31m`,
		"turned \u202e\u2066\u200f":               `turned \u202e\u2066\u200f`,
		"no width \u200b\u200d\u2060\ufeff\u00ad": `no width \u200b\u200d\u2060\ufeff\u00ad`,
		"tags \U000e0041, lines \u2028\u2029":     `tags \U000e0041, lines \u2028\u2029`,
		"replaced \ufffd":                         "replaced \ufffd",
		"Get https://me:hunter2@h/x: no":          "Get https://me:xxxxx@h/x: no",
		"docker://a:5000/b@sha256:c http://h:80":  "docker://a:5000/b@sha256:c http://h:80",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
