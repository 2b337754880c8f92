package lab

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// RecordsAt and RecordsSize are where a guest's records are on its disk, in bytes: behind what tests write there otherwise.
const (
	RecordsAt   = 1 << 20
	RecordsSize = 4 << 20
	recordSize  = 512
)

// writeRecords writes a record to a disk, its first argument, about five times a second: its number, and the id of the guest's boot. The
// place of the next one must be empty on the disk itself; otherwise another guest writes, too, and the record says so.
const writeRecords = `cat >/records.sh <<'END'
dd if=/dev/urandom of=/filled bs=1M count=%[6]d
boot=$(cat /proc/sys/kernel/random/boot_id) n=0
while [ $n -lt %[2]d ]; do
	at=$((%[3]d + n)) twice=
	blockdev --flushbufs /dev/%[1]s
	[ -z "$(dd if=/dev/%[1]s bs=%[4]d skip=$at count=1 | tr -d '\0')" ] || twice=' twice'
	printf '%%-%[5]ds\n' "$n $boot$twice" | dd of=/dev/%[1]s bs=%[4]d seek=$at conv=notrunc,fsync || exit
	n=$((n + 1))
	usleep 200000
done
END
sh /records.sh </dev/null >/dev/null 2>&1 &
`

// WriteRecords is the kernel parameter that has a guest write numbered records to a disk, such as vda, from READY on until its end.
func WriteRecords(disk string) string { return WriteRecordsIn(disk, 0) }

// WriteRecordsIn is WriteRecords in a guest that first fills that many MiB of its memory with random bytes.
// A file of the guest has at most half of the memory.
func WriteRecordsIn(disk string, filled int) string {
	script := fmt.Sprintf(writeRecords, disk, RecordsSize/recordSize, RecordsAt/recordSize, recordSize, recordSize-1, filled)
	return "virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte(script))
}

// CheckRecords counts the records in the RecordsSize bytes of a disk from RecordsAt on. It is an error if one is missing before others, was
// written twice or is not whole, or if the guest has booted more than once.
func CheckRecords(content string) (count int, err error) {
	first := ""
	for ; len(content) >= recordSize; content = content[recordSize:] {
		record := content[:recordSize]
		if strings.Trim(record, "\x00") == "" {
			break
		}
		number, boot, _ := strings.Cut(strings.TrimRight(record, " \n"), " ")
		if count == 0 {
			first = boot
		}
		if number != fmt.Sprint(count) || boot != first || boot == "" || strings.Contains(boot, " ") || !strings.HasSuffix(record, "\n") {
			return count, fmt.Errorf("record %d of boot %q is %q", count, first, record)
		}
		count++
	}
	if rest := strings.Trim(content, "\x00"); rest != "" {
		return count, fmt.Errorf("record %d is missing before %.60q", count, rest)
	}
	return count, nil
}
