package source

import "testing"

func TestPath(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "/mnt/a", "/mnt/a"},
		{"trailing slash", "/mnt/a/", "/mnt/a"},
		{"double slash", "//mnt//a", "/mnt/a"},
		{"root", "/", "/"},
		{"dots in a name", "/mnt/..a/b..", "/mnt/..a/b.."},
		{"not English", "/mnt/müller/データ", "/mnt/müller/データ"},

		{"empty", "", ""},
		{"relative", "mnt/a", ""},
		{"upwards", "/mnt/../etc", ""},
		{"upwards at the end", "/mnt/..", ""},
		{"line break", "/mnt/a\nb", ""},
		{"zero", "/mnt/a\x00b", ""},
		{"no UTF-8", "/mnt/\xff", ""},
		{"no character of XML", "/mnt/\uffff", ""},
		{"text direction", "/mnt/\u202ea", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := Path(tt.in); got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("Path(%q) = %q, %v", tt.in, got, err)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"replicapool": true, ".rgw": true, "csi-vol-1_a.b": true, "a b": true, "größe": true,
		"": false, "a/b": false, "a@b": false, "a:b": false, "a\tb": false, "\xff": false, ".": false, "..": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}

func TestParseHost(t *testing.T) {
	tests := []struct{ in, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"Nfs.Example.com", "Nfs.Example.com"},
		{"2001:DB8::1", "2001:db8::1"},
		{"[2001:db8::1]", "2001:db8::1"},
		{"", ""},
		{"a:2049", ""},
		{"192.0.2.300", ""},
		{"fe80::1%eth0", ""},
		{"a/b", ""},
		{"-o", ""},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			if got, err := ParseHost(tt.in); got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("ParseHost(%q) = %q, %v", tt.in, got, err)
			}
		})
	}
}
