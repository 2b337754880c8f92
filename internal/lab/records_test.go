package lab

import (
	"fmt"
	"strings"
	"testing"
)

// records are those of numbers, padded with zeros.
func records(texts ...string) string {
	var all strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&all, "%-*s\n", recordSize-1, text)
	}
	return all.String() + strings.Repeat("\x00", RecordsSize-all.Len())
}

func TestCheckRecords_SeesEachDamage(t *testing.T) {
	whole := records("0 x", "1 x", "2 x")
	for name, c := range map[string]struct {
		content string
		want    int
		err     string
	}{
		"none":                    {content: records()},
		"whole":                   {content: whole, want: 3},
		"one is overwritten":      {content: records("0 x", "1 x", "1 x"), want: 2, err: "record 2"},
		"the first is missing":    {content: whole[recordSize:], err: "record 0"},
		"one is cut out":          {content: whole[:recordSize] + whole[2*recordSize:], want: 1, err: "record 1"},
		"one is zeros":            {content: whole[:recordSize] + records()[:recordSize] + whole[2*recordSize:], want: 1, err: "record 1 is missing"},
		"another boot":            {content: records("0 x", "1 y"), want: 1, err: "record 1"},
		"another guest at once":   {content: records("0 x", "1 x twice"), want: 1, err: "twice"},
		"written twice at first":  {content: records("0 x twice"), err: "twice"},
		"no boot":                 {content: records("0"), err: "record 0"},
		"the last is half":        {content: whole[:2*recordSize+9] + records()[:recordSize-9], want: 2, err: "record 2"},
		"begins with other bytes": {content: "what the storage had" + whole, err: "record 0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CheckRecords(c.content)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%d records, %v", got, err)
			}
		})
	}
}
